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
	// answerLimit bounds an answer and an event: etcd keeps at most 1.5 MiB of an object, and as JSON it is at most six
	// times that.
	answerLimit = 16 << 20
	// objectLimit bounds a single object that is read, and of others the fields that are read; decoded they take at
	// most some 20 times that.
	objectLimit = 2 << 20
	// smallAnswer is the size up to which answers and events of one API server are read side by side.
	smallAnswer = 64 << 10
	// Limits of texts, as in Kubernetes, and of the metadata of a list.
	nameLimit, uidLimit, metadataLimit = 253, 64, 8 << 10
)

var (
	// errBounds is an answer or an event that exceeds the bounds of its API server.
	errBounds = errors.New("the answer exceeds the limits for one cluster")
	// errTooLarge is one of too many bytes.
	errTooLarge = beyond("it is too large")
)

// Bounds limit the memory that one of many API servers takes (NAA-12). An answer or event of more than 64 KiB is read
// and decoded while no other one is.
type Bounds struct {
	// Pages limits the objects of a list, and of the beginning of a stream: pages of 500 objects.
	Pages int
	// Timeout limits the time of either.
	Timeout time.Duration
	// Exceeded is called with the kind and the reason when a list or a stream is beyond a limit.
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

// Client returns an HTTP client whose answers are bounded. Streams are bounded by their decoder.
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

// boundedBody is an answer. Its room is kept until it is closed, which is after it was decoded where it may be large.
type boundedBody struct {
	io.ReadCloser
	ctx  context.Context
	slot slot
	// read has been read, and left may be read.
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

// slot is the right to have one answer of more than 64 KiB in memory.
type slot struct {
	bounds *Bounds
	taken  atomic.Bool
}

// take waits for the right as soon as so much has been read that it is needed.
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

// readAnswer reads an answer into a buffer that doubles, so that little garbage is left.
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

// steadily is the size from which on buffers grow by as much each time.
const steadily = 4 << 20

// withCapacity returns the bytes with room for as many more.
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

// exceeded reports an error that is beyond a limit.
func (f *Follower) exceeded(err error) {
	if f.Bounds != nil && errors.Is(err, errBounds) {
		f.Bounds.Exceeded(f.Name, err)
	}
}

// watchOver reports a beginning that is not over in time.
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
