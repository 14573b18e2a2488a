package fake

import (
	"net/http"
	"time"
)

// Network decides how requests travel.
type Network interface {
	// Carry carries out a request: it may wait, refuse, call do once, more than once or not at all, and lose the answer.
	Carry(from *http.Request, r *Request, do func() *http.Response) (*http.Response, error)
	// Delay is how late an event of a watch arrives that happens now.
	Delay(r *Request) time.Duration
}

// Transport is how one client reaches a server.
type Transport struct {
	Server  *Server
	By      string
	Network Network // nil for one that does nothing
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(from *http.Request) (*http.Response, error) {
	r, err := parse(t.By, from)
	if err != nil {
		return nil, err
	}
	if t.Network == nil {
		return t.Server.Do(from, r, func() time.Duration { return 0 }), nil
	}
	return t.Network.Carry(from, r, func() *http.Response {
		return t.Server.Do(from, r, func() time.Duration { return t.Network.Delay(r) })
	})
}
