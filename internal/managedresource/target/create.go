package target

import (
	"context"
	"net/http"
	"time"
)

// answeredWithin bounds a creation that was sent before its run ended, as at the end of the process: the process has
// four seconds to end, and records the created objects.
const answeredWithin = 2 * time.Second

// answering is the key of the context that a request has from the moment at which it is sent.
type answering struct{}

// outliving returns the context of a creation that is sent on behalf of run, and waits with ctx until then. Only its
// answer proves that the object is ours, so that the answer must not be thrown away a moment before it comes.
func outliving(ctx, run context.Context) (context.Context, context.CancelFunc) {
	sent, cancel := context.WithTimeout(context.WithoutCancel(run), requestTimeout)
	stop := context.AfterFunc(run, func() { time.AfterFunc(answeredWithin, cancel) })
	return context.WithValue(ctx, answering{}, sent), func() {
		stop()
		cancel()
	}
}

// sending sends requests. The steps before that, such as the wait for a rate limit, end with the context of the
// request in any case. A creation that waits for a connection when the run ends may still go out within the two
// seconds: the inventory has the object.
type sending struct{ http.RoundTripper }

// outlivingClient returns a client whose creations outlive their runs, as outliving says.
func outlivingClient(client *http.Client) *http.Client {
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	result := *client
	result.Transport = sending{transport}
	return &result
}

// RoundTrip begins no request whose context has ended.
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
		return nil, waiting.Err() // As without outliving.
	}
	return response, err
}
