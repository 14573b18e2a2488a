package endpoint

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/http2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// One API server sends all its reviews over one HTTP/2 connection to a host, and unread bytes of a body use the
// connection's window. So the connection has a window for all streams that it may have: unread bodies never block
// another stream.
//
//	streams × streamWindow = 250 × 64 KiB = 16 MiB = connectionWindow
//
// That is also the maximum of unread memory of one connection. A body of a megabyte then needs sixteen round trips, a
// few milliseconds.
const (
	streams          = 250
	streamWindow     = 64 << 10
	connectionWindow = streams * streamWindow
)

const (
	// HeaderBytes limits the headers of a request. API servers, kubelet and Prometheus send less than 2 KiB. With
	// 1,280 reviews and 512 bodies that wait, headers take 28 MiB.
	HeaderBytes = 16 << 10
	// TokenHeaderBytes is the limit for clients with tokens, which have 16 KiB at most.
	TokenHeaderBytes = 32 << 10
	// stuckConnection is the time after which a connection is closed that accepts no byte, regardless of its windows.
	stuckConnection = 15 * time.Second
	// slowestPage limits the time of any request, including debug pages. The responses to reviews have their own
	// deadline.
	slowestPage = 30 * time.Second
	// answerTime limits the time in which a client reads the response to a review.
	answerTime = 5 * time.Second
)

// NewServer returns the server of a port, with a limit for the size of headers. Its limits for idle connections are
// controller-runtime's.
func NewServer(handler http.Handler, headers int) (*http.Server, error) {
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: headers, IdleTimeout: 90 * time.Second, ReadHeaderTimeout: 32 * time.Second, WriteTimeout: slowestPage,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log.Log.WithName("http")), slog.LevelError),
	}
	return server, http2.ConfigureServer(server, transport()) //nolint:staticcheck // See transport.
}

// transport is from golang.org/x/net, like kube-apiserver's: http.HTTP2Config has windows of less than 4 MiB only.
//
//nolint:staticcheck // Deprecated for http.HTTP2Config.
func transport() *http2.Server {
	return &http2.Server{
		MaxConcurrentStreams: streams, MaxUploadBufferPerStream: streamWindow, MaxUploadBufferPerConnection: connectionWindow, WriteByteTimeout: stuckConnection,
	}
}

// Serve serves until the context ends, and then waits for requests in progress, for at most the grace.
func Serve(ctx context.Context, listener net.Listener, server *http.Server, grace time.Duration) error {
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		ended <- server.Shutdown(late)
	})
	if err := server.Serve(listener); err != http.ErrServerClosed { //nolint:errorlint // Serve returns it as it is.
		stop()
		return err
	}
	return <-ended
}

// Answering sets the deadline for a client to read a response. If it is exceeded, the stream or its connection is
// closed.
func Answering(w http.ResponseWriter) {
	// In tests without a connection there are no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
}

// Deadline bounds the time for the response to a request: at most this long, and less if the client waits less, which
// kube-apiserver sends as the parameter timeout. A tenth of the client's time is left for the transfer of the
// response.
func Deadline(request *http.Request, most time.Duration) (context.Context, context.CancelFunc) {
	if timeout, err := time.ParseDuration(request.URL.Query().Get("timeout")); err == nil && timeout > 0 {
		most = min(most, timeout-timeout/10)
	}
	return context.WithTimeout(request.Context(), most)
}
