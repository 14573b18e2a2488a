package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// answerLimit limits a response and an event: etcd stores at most 1.5 MiB of an object, and as JSON it is at most
	// six times that.
	answerLimit = 16 << 20
	// objectLimit limits a single object that is read, and of others the fields that are read. Decoded they take at
	// most about 20 times that.
	objectLimit = 2 << 20
	// smallAnswer is the size up to which responses and events of one API server are read concurrently.
	smallAnswer = 64 << 10
	// Limits of texts, as in Kubernetes, and of the metadata of a list.
	nameLimit, uidLimit, metadataLimit = 253, 64, 8 << 10
)

var (
	// errBounds is the error for a response or an event that exceeds the bounds of its API server.
	errBounds = errors.New("the answer exceeds the limits for one cluster")
	// errTooLarge is the error for too many bytes.
	errTooLarge = beyond("it is too large")
)

// Bounds limit the memory for one of many API servers (NAA-12). Responses and events of more than 64 KiB are read and
// decoded one at a time.
type Bounds struct {
	// Pages limits the objects of a list, and of the beginning of a stream, in pages of 500 objects.
	Pages int
	// Timeout limits the time of a list, and of the beginning of a stream.
	Timeout time.Duration
	// Exceeded is called with the kind and the reason when a list or a stream exceeds a limit.
	Exceeded func(kind string, reason error)

	large chan struct{}
}

// NewBounds returns bounds without a receiver.
func NewBounds(pages int, timeout time.Duration) *Bounds {
	return &Bounds{Pages: pages, Timeout: timeout, Exceeded: func(string, error) {}, large: make(chan struct{}, 1)}
}

func beyond(format string, values ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errBounds}, values...)...)
}

// Client returns an HTTP client whose responses are bounded. Streams are bounded by their decoder.
func (b *Bounds) Client(of *http.Client) *http.Client {
	bounded := *of
	bounded.Transport = &boundedTransport{b, of.Transport}
	return &bounded
}

type boundedTransport struct {
	bounds *Bounds
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil && (response.StatusCode != http.StatusOK || !request.URL.Query().Has("watch")) {
		limit := objectLimit
		if response.StatusCode == http.StatusOK && request.URL.Query().Has("limit") {
			limit = answerLimit
		}
		response.Body = &boundedBody{ReadCloser: response.Body, ctx: request.Context(), slot: slot{bounds: t.bounds}, left: limit}
	}
	return response, err
}

// boundedBody is the body of a response. It has its slot until it is closed, which is after decoding if it may be
// large.
type boundedBody struct {
	io.ReadCloser
	ctx  context.Context
	slot slot
	// read is the number of bytes that were read, and left of those that may be read.
	read, left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.slot.take(b.ctx, b.read); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.read, b.left = b.read+n, b.left-n
	if b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	b.slot.giveBack()
	return b.ReadCloser.Close()
}

// slot is the permission to have one response of more than 64 KiB in memory.
type slot struct {
	bounds *Bounds
	taken  atomic.Bool
}

// take waits for the permission as soon as the number of bytes that were read requires it.
func (r *slot) take(ctx context.Context, read int) error {
	switch {
	case r.bounds == nil:
		return nil
	case read <= smallAnswer || r.taken.Load():
		return nil
	}
	select {
	case r.bounds.large <- struct{}{}:
		r.taken.Store(true)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *slot) giveBack() {
	if r.taken.Swap(false) {
		<-r.bounds.large
	}
}

// readAnswer reads a response into a buffer that doubles, so that little garbage is left.
func readAnswer(body io.Reader) ([]byte, error) {
	var raw []byte
	for {
		raw = withCapacity(raw, 4<<10)
		n, err := body.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if errors.Is(err, io.EOF) {
			return raw, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// steadily is the size from which buffers grow by this amount instead of doubling.
const steadily = 4 << 20

// withCapacity returns the bytes with capacity for the given number of further bytes.
func withCapacity(raw []byte, more int) []byte {
	if len(raw)+more <= cap(raw) {
		return raw
	}
	return append(make([]byte, 0, max(cap(raw)+min(cap(raw), steadily), len(raw)+more)), raw...)
}

// checkObject returns an error for an object whose texts no API server of Kubernetes would have accepted.
func checkObject(object metav1.Object) error {
	for _, text := range []string{object.GetName(), object.GetNamespace()} {
		if len(text) > nameLimit {
			return beyond("a name has %d bytes", len(text))
		}
	}
	if n := max(len(object.GetUID()), len(object.GetResourceVersion())); n > uidLimit {
		return beyond("a UID or resource version has %d bytes", n)
	}
	return nil
}

// exceeded reports an error about a limit.
func (f *Follower) exceeded(err error) {
	if f.Bounds != nil && errors.Is(err, errBounds) {
		f.Bounds.Exceeded(f.Name, err)
	}
}

// watchOver reports a beginning that does not end in time.
func (f *Follower) watchOver(b *beginning) {
	if f.Bounds == nil || b.over {
		return
	}
	time.AfterFunc(f.Bounds.Timeout, func() {
		f.taking.Lock()
		late := f.current == b && !b.over
		f.taking.Unlock()
		if late {
			f.exceeded(beyond("the list is not complete after %s", f.Bounds.Timeout))
		}
	})
}
