package answers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
)

// Transport fails answers whose decoded form takes too much, before they are decoded, and charges the others to the share.
type Transport struct {
	Inner http.RoundTripper
	Types *Types
	Share *Share
}

// NewExceeded returns a counter of failed answers that a registry knows.
func NewExceeded(registry prometheus.Registerer) prometheus.Counter {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "espalier_target_answers_exceeded_total",
		Help: "Failed answers of targets that exceeded the memory for one, or for all.",
	})
	registry.MustRegister(counter)
	return counter
}

// piecesKey marks the context of a request.
type piecesKey struct{}

// InPieces marks a request whose client decodes the objects of a list one by one (Items).
func InPieces(ctx context.Context) context.Context { return context.WithValue(ctx, piecesKey{}, true) }

// IsWatch reports whether a request is answered by a stream.
func IsWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	response, err := t.Inner.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		context.AfterFunc(request.Context(), cancel)
		return response, nil
	}
	read := t.Share.read(response.Body, cancel)
	q := questionOf(request)
	q.pieces = q.pieces && response.StatusCode == http.StatusOK
	protobuf := false
	if protobuf, q.plain, err = encodingOf(response.Header); err != nil {
		t.Share.of.failed()
		_ = read.Close()
		return nil, err
	}
	if IsWatch(request) && response.StatusCode == http.StatusOK {
		response.Body = &events{body: read, protobuf: protobuf, check: func(text []byte) error {
			return t.charged(t.Types.event(q, protobuf, text))
		}}
	} else {
		response.Body = &whole{body: read, check: func(text []byte) error {
			return t.charged(t.Types.cost(q, protobuf || bytes.HasPrefix(text, magic), text))
		}}
	}
	return response, nil
}

func (t *Transport) charged(cost int64, err error) error {
	if err == nil {
		return t.Share.charge(cost)
	}
	t.Share.of.failed()
	return err
}

func questionOf(request *http.Request) *question {
	q := &question{path: request.URL.Path, accept: request.Header.Get("Accept")}
	q.pieces, _ = request.Context().Value(piecesKey{}).(bool)
	if values := request.URL.Query(); values.Get("resourceVersion") == "" {
		q.limit, _ = strconv.Atoi(values.Get("limit")) // With a version an API server answers from its cache, with all objects.
	}
	return q
}

// encodingOf returns the encoding that an answer claims. An answer that claims neither encoding is scanned as JSON,
// because the client library decodes some answers as JSON whatever their type; an answer that is not JSON is no error
// there. Encodings that the library decodes and that are not scanned are refused.
func encodingOf(header http.Header) (protobuf, plain bool, err error) {
	claimed := header.Get("Content-Type")
	media, _, parseErr := mime.ParseMediaType(claimed)
	switch {
	case strings.Contains(media, "yaml") || strings.Contains(media, "cbor"):
		return false, false, fmt.Errorf("the answer is of type %.40q, and neither JSON nor Protocol Buffers", claimed)
	case media == runtime.ContentTypeProtobuf:
		return true, false, nil
	}
	return false, claimed != "" && (parseErr != nil || media != runtime.ContentTypeJSON), nil
}

// whole is an answer that is read to its end, and checked, before anything of it is handed on.
type whole struct {
	body  io.ReadCloser
	check func([]byte) error
	text  bytes.Buffer
	begun bool
	err   error
}

// Read implements io.Reader.
func (w *whole) Read(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		if _, w.err = w.text.ReadFrom(w.body); w.err == nil {
			w.err = w.check(w.text.Bytes())
		}
	}
	if w.err != nil {
		w.text = bytes.Buffer{}
		return 0, w.err
	}
	return w.text.Read(p)
}

// Close implements io.Closer.
func (w *whole) Close() error { return w.body.Close() }
