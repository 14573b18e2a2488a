package cluster

import (
	"errors"
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// RefuseRedirects changes and returns the configuration: its clients fail if an API server redirects to another host,
// redirects a write, or switches to another protocol (CCH-62). The client of net/http would follow redirects to any
// host that this process can reach, and repeat the body of a write there.
func RefuseRedirects(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &noRedirects{next} })
	return config
}

type noRedirects struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n *noRedirects) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := checkRedirect(request, response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// WrappedRoundTripper returns the wrapped transport to clients.
func (n *noRedirects) WrappedRoundTripper() http.RoundTripper { return n.next }

// CloseIdleConnections closes the idle connections of the wrapped transport.
func (n *noRedirects) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(n.next) }

var errSwitches = errors.New("the API server switches to another protocol without a request for it; the answer is dropped")

func checkRedirect(request *http.Request, response *http.Response) error {
	switch response.StatusCode {
	case http.StatusSwitchingProtocols:
		return errSwitches
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := request.URL.Parse(response.Header.Get("Location"))
	if err != nil {
		return errors.New("the API server redirects to an invalid address; the redirect is not followed")
	}
	isRead := request.Method == http.MethodGet || request.Method == http.MethodHead
	if isRead && to.Scheme == request.URL.Scheme && to.Host == request.URL.Host {
		return nil
	}
	return fmt.Errorf("the API server redirects %s to %s; the redirect is not followed", request.Method, oneLine(to.Redacted()))
}
