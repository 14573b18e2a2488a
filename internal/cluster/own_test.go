package cluster

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestOwn: a connection of one's own is another one than that of all clients of a cluster, though client-go shares connections by their configuration,
// and has no client-side rate (T3-2: seeds and shoots have connections of their own).
func TestOwn(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	shared, err := Connect(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: 50, Burst: 100})
	must.Succeed(t, err)
	connections := []Connection{shared}
	for range 2 {
		own, err := shared.Own()
		must.Succeed(t, err)
		expect.True(t, own.REST.QPS < 0 && own.REST.RateLimiter == nil && shared.REST.QPS == 50,
			"T3-1: the rate is %v, that of all others %v", own.REST.QPS, shared.REST.QPS)
		connections = append(connections, own)
	}
	for range 3 {
		for _, c := range connections {
			response, err := c.HTTP.Get(server.URL)
			must.Succeed(t, err)
			_ = response.Body.Close()
		}
	}
	n := opened.Load()
	expect.Equal(t, n, 3, "T3-2: there are %d connections", n)
}
