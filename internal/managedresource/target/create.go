package target

import (
	"context"
	"net/http"
	"time"
)

// answeredWithin limits how long a creation that was sent outlives its run, for instance at the end of the process:
// the process has four seconds to end, and records the created objects.
const answeredWithin = 2 * time.Second

// answering is the key of the context that replaces the context of a request once it is sent.
type answering struct{}

// outliving returns the context of a creation for run: ctx until the creation is sent, then a context that outlives
// run. Only the answer proves that the object is ours, so it must not be lost if it arrives a moment after the end of
// the run.
func outliving(ctx, run context.Context) (context.Context, context.CancelFunc) {
	sent, cancel := context.WithTimeout(context.WithoutCancel(run), requestTimeout)
	stop := context.AfterFunc(run, func() { time.AfterFunc(answeredWithin, cancel) })
	return context.WithValue(ctx, answering{}, sent), func() {
		stop()
		cancel()
	}
}

// sending replaces the context of a creation when it is sent. Earlier steps, such as the wait for a rate limit, end
// with the context of the request. A creation that waits for a connection when the run ends may still be sent within
// the two seconds; this is safe, because the inventory has the object.
type sending struct{ http.RoundTripper }

// outlivingClient returns a client whose creations outlive their runs, as outliving defines.
func outlivingClient(client *http.Client) *http.Client {
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	result := *client
	result.Transport = sending{transport}
	return &result
}

// RoundTrip implements http.RoundTripper. It does not send a request whose context has ended.
func (s sending) RoundTrip(request *http.Request) (*http.Response, error) {
	waiting := request.Context()
	sent, outlives := waiting.Value(answering{}).(context.Context)
	if !outlives {
		return s.RoundTripper.RoundTrip(request)
	}
	if err := waiting.Err(); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := s.RoundTripper.RoundTrip(request.WithContext(sent))
	if err != nil && waiting.Err() != nil {
		return nil, waiting.Err() // The same error as without outliving.
	}
	return response, err
}
