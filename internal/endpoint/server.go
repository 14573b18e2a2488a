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

// One API server sends all its reviews over one HTTP/2 connection to a host, and a body that is not read takes its
// sent bytes from the connection's window. So the connection has a window for all streams that it may have: unread
// bodies never block another stream.
//
//	streams × streamWindow = 250 × 64 KiB = 16 MiB = connectionWindow
//
// That is also what one connection may have in memory unread. A body of a megabyte needs sixteen round trips then, a few milliseconds.
const (
	streams          = 250
	streamWindow     = 64 << 10
	connectionWindow = streams * streamWindow
)

const (
	// HeaderBytes limits the headers of a request. Those of API servers, kubelet and Prometheus have less than 2 KiB. With 1,280 reviews and 512 bodies
	// that wait, headers take 28 MiB.
	HeaderBytes = 16 << 10
	// TokenHeaderBytes is the same where tokens come in, which have 16 KiB at most.
	TokenHeaderBytes = 32 << 10
	// stuckConnection is the time after which a connection that takes no byte is closed, whatever its windows say.
	stuckConnection = 15 * time.Second
	// slowestPage limits the time of any request, a debug page included. Reviews have a deadline of their own for
	// their answers.
	slowestPage = 30 * time.Second
	// answerTime limits the time in which a client reads the answer to a review.
	answerTime = 5 * time.Second
)

// NewServer returns the server of a port, which takes headers up to a size. Its bounds for idle connections are those of controller-runtime.
func NewServer(handler http.Handler, headers int) (*http.Server, error) {
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: headers, IdleTimeout: 90 * time.Second, ReadHeaderTimeout: 32 * time.Second, WriteTimeout: slowestPage,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(log.Log.WithName("http")), slog.LevelError),
	}
	return server, http2.ConfigureServer(server, transport()) //nolint:staticcheck // As transport.
}

// transport is of golang.org/x/net, as that of kube-apiserver is: http.HTTP2Config promises windows of less than 4 MiB only.
//
//nolint:staticcheck // Deprecated for http.HTTP2Config.
func transport() *http2.Server {
	return &http2.Server{
		MaxConcurrentStreams: streams, MaxUploadBufferPerStream: streamWindow, MaxUploadBufferPerConnection: connectionWindow, WriteByteTimeout: stuckConnection,
	}
}

// Serve serves until the context ends, and then for as long as requests are under way.
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

// Answering gives a client the time that it may take to read an answer. An answer that is not read by then is given up with its stream, or its
// connection.
func Answering(w http.ResponseWriter) {
	// A writer without deadlines, as in tests without a connection, needs none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
}

// Deadline bounds the time for the answer to a request: at most this long, and less if the client waits less, as
// kube-apiserver does with the parameter timeout. A tenth of the client's time is left for the answer to get there.
func Deadline(request *http.Request, most time.Duration) (context.Context, context.CancelFunc) {
	if timeout, err := time.ParseDuration(request.URL.Query().Get("timeout")); err == nil && timeout > 0 {
		most = min(most, timeout-timeout/10)
	}
	return context.WithTimeout(request.Context(), most)
}
