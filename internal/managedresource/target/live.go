package target

import (
	"bytes"
	"compress/flate"
	"context"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const (
	// cachedBytes limits the listed objects that are kept until they are compared. An object is compressed to 100 to
	// 300 bytes with another one of its kind as the dictionary, so that cachedBytes is enough for a hundred thousand
	// objects; objects that do not fit are read one by one.
	cachedBytes = 24 << 20
	// cachedFor is the time for which listed objects are kept. All ManagedResources run within seconds after a start;
	// an object that no run reads until then belongs to a ManagedResource that waits.
	cachedFor = 10 * time.Minute
	// entryBytes is the size of the entry of the map for an object and its overhead, in addition to the compressed
	// object.
	entryBytes = 100
	// listedWithin limits how long a comparison waits for the list of its kind, of up to two hundred pages, before it
	// reads the object.
	listedWithin = 30 * time.Second
	// listedAgainWithin limits the wait for the list after the end of a watch: kube-apiserver ends the watches of
	// clients that do not keep up with a burst of changes.
	listedAgainWithin = 5 * time.Second
	// wholeLists limits the concurrent lists of entire objects: a page of large objects takes megabytes.
	wholeLists = 2
	// slowPage is the time after which a list that waits for a page no longer counts towards wholeLists. A list that
	// hangs, for instance because a conversion webhook does not answer, takes no memory, and must not delay the lists
	// of other kinds for the minute that it may last.
	slowPage = 3 * time.Second
)

// live caches listed objects until they are compared, so that a restart costs a few requests for each kind and not
// one for each object.
//
// Invariants: an object is handed out once, only while the watch covers its scope, so that every change is reported,
// and only if the tracker has no later version and no check of the object was requested since. It may then be used
// like an object that was just read, because every write that is based on it has its resource version. The absence of
// an object proves nothing.
type live struct {
	mu sync.Mutex
	// expected has the scopes whose next list must have entire objects, with the time of the last progress of that
	// list: its start or a page; zero before.
	expected map[scope]time.Time
	cached   map[types.UID]packed
	size     int
	expiry   *time.Timer

	lists chan struct{}
}

type packed struct {
	bytes      []byte
	dictionary []byte
	requested  uint16
}

// size returns the object's share of cachedBytes.
func (p packed) size() int { return len(p.bytes) + entryBytes }

func newLive() *live {
	return &live{expected: map[scope]time.Time{}, cached: map[types.UID]packed{},
		lists: make(chan struct{}, wholeLists)}
}

// expect requests that the next list of a scope has entire objects.
func (l *live) expect(s scope) {
	if s.all {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, expected := l.expected[s]; !expected {
		l.expected[s] = time.Time{}
	}
}

func (l *live) expects(s scope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, expected := l.expected[s]
	return expected
}

// until returns the time until which callers may wait for the expected list of a scope.
func (l *live) until(s scope) (_ time.Time, expected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, expected := l.expected[s]
	if last.IsZero() {
		last = time.Now() // The list waits for other lists.
	}
	return last.Add(listedWithin), expected
}

// progressed records progress of the expected list of a scope: its start or a page.
func (l *live) progressed(s scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, expected := l.expected[s]; expected {
		l.expected[s] = time.Now()
	}
}

// begin waits until a list of entire objects may start, and returns the function that requests its pages; the caller
// must call end.
func (l *live) begin(ctx context.Context, s scope, whole pageFunc) (page pageFunc, end func(), err error) {
	select {
	case l.lists <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	end = sync.OnceFunc(func() { <-l.lists })
	l.progressed(s)
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		defer time.AfterFunc(slowPage, end).Stop()
		list, err := whole(ctx, options)
		if err == nil {
			l.progressed(s)
		}
		return list, err
	}, end, nil
}

// listed ends a list; if it was complete, no other list is expected.
func (l *live) listed(s scope, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !complete {
		return
	}
	delete(l.expected, s)
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.expiry = time.AfterFunc(cachedFor, l.drop)
}

func (l *live) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cached)
	l.size = 0
}

// keep caches an object from the list of a packer, without its managed fields, and with the number of checks that
// were requested (Revision.Requested).
func (l *live) keep(p *packer, object *unstructured.Unstructured, requested uint16) {
	managedFields := object.GetManagedFields()
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	content, err := object.MarshalJSON()
	if len(managedFields) > 0 {
		object.SetManagedFields(managedFields)
	}
	if err != nil {
		return // It is read instead.
	}
	bytes := p.pack(content)
	l.mu.Lock()
	defer l.mu.Unlock()
	uid := object.GetUID()
	if old, found := l.cached[uid]; found { // The list was restarted.
		delete(l.cached, uid)
		l.size -= old.size()
	}
	entry := packed{bytes, p.dictionary, requested}
	if l.size+entry.size() > cachedBytes {
		return
	}
	l.size += entry.size()
	l.cached[uid] = entry
}

// take returns the object with a UID, and removes it; nil if it is not cached, or a check was requested since.
func (l *live) take(uid types.UID, requested uint16) *unstructured.Unstructured {
	p, found := l.remove(uid)
	if !found || p.requested != requested {
		return nil
	}
	content, err := p.unpack()
	if err != nil {
		return nil
	}
	object := &unstructured.Unstructured{}
	if object.UnmarshalJSON(content) != nil {
		return nil
	}
	return object
}

func (l *live) remove(uid types.UID) (p packed, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, found = l.cached[uid]; found {
		delete(l.cached, uid)
		l.size -= p.size()
		if len(l.cached) == 0 {
			l.cached = map[types.UID]packed{} // A map never shrinks.
		}
	}
	return p, found
}

// readers are reused, because a new one costs more memory than its input.
var readers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

func (p packed) unpack() ([]byte, error) {
	reader := readers.Get().(io.ReadCloser)
	defer readers.Put(reader)
	if err := reader.(flate.Resetter).Reset(bytes.NewReader(p.bytes), p.dictionary); err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// packer compresses the objects of one list. They are similar, so the first one is the dictionary for all.
type packer struct {
	dictionary []byte
	writer     *flate.Writer
	buffer     bytes.Buffer
}

func (p *packer) pack(content []byte) []byte {
	const (
		window = 32 << 10 // The format can refer back that far.
		level  = 2        // The fastest that uses a dictionary.
	)
	if p.writer == nil {
		p.dictionary = bytes.Clone(content[max(0, len(content)-window):])
		p.writer, _ = flate.NewWriterDict(&p.buffer, level, p.dictionary) // The level is valid.
	}
	p.buffer.Reset()
	p.writer.Reset(&p.buffer)
	_, _ = p.writer.Write(content) // A buffer takes everything.
	_ = p.writer.Close()
	return bytes.Clone(p.buffer.Bytes())
}

// Expect announces, before the watches start, the objects that are about to be compared, so that the first lists of
// their kinds have entire objects for FromList.
func (w *Watches) Expect(owner objects.Owner, refs []objects.Ref) {
	if !w.disabled {
		for s := range w.scopesOf(refs) {
			w.live.expect(s)
		}
	}
	w.Track(owner, refs)
}

// FromList returns an object from a list of its kind if a watch has covered it since and reported no change, and
// otherwise nil. It returns each object once; every write that is based on it must have its resource version.
func (w *Watches) FromList(ctx context.Context, ref objects.Ref) *unstructured.Unstructured {
	s := w.scopeOf(ref)
	w.mu.Lock()
	a := w.active[s]
	w.mu.Unlock()
	if a == nil {
		return nil
	}
	if until, expected := w.live.until(s); expected {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		if a.await(ctx) != nil {
			return nil
		}
	}
	if !a.covers() {
		return nil
	}
	recorded := w.tracker.Get(ref.ID)
	if !recorded.Present {
		return nil
	}
	object := w.live.take(recorded.UID, recorded.Revision.Requested)
	if object == nil || object.GetResourceVersion() != recorded.ResourceVersion || object.GroupVersionKind() != ref.GVK() {
		return nil
	}
	return object
}
