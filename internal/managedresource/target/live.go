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
	// cachedBytes limits the listed objects that are kept until they are compared. An object packs to 100 to 300 bytes
	// next to another one of its kind, so that cachedBytes is enough for a hundred thousand objects; objects that do not
	// fit are read one by one.
	cachedBytes = 24 << 20
	// cachedFor is the time for which a list is kept: all ManagedResources run within seconds after a start, and an
	// object that no run reads until then belongs to a ManagedResource that waits for something.
	cachedFor = 10 * time.Minute
	// entryBytes is the size of an object in addition to its packed form: the entry of the map and its overhead.
	entryBytes = 100
	// listedWithin limits the wait of a comparison for the list of its kind, before it reads the object: two hundred
	// pages.
	listedWithin = 30 * time.Second
	// listedAgainWithin limits the wait for the list after the end of a watch. kube-apiserver ends the watches of clients
	// that do not keep up with a burst of changes.
	listedAgainWithin = 5 * time.Second
	// wholeLists is the number of lists of whole objects at a time: a page of large objects takes megabytes.
	wholeLists = 2
	// slowPage is the time after which a list that waits for a page no longer counts among those: a list that hangs,
	// as of a kind whose conversion webhook does not answer, takes no memory, and must not hold up the lists of other
	// kinds for the minute that it may take.
	slowPage = 3 * time.Second
)

// live has the objects of lists until they are compared, so that a restart costs a few requests for each kind and not
// one for each object.
//
// Invariants: an object is handed out once, and only while the watch of its scope covers, so that no change goes
// unreported, and only if the tracker knows no later version than the listed one, and has not called that into
// question since. It is as good as an object that was read at that moment: every write that is based on it carries its
// resource version. The absence of an object proves nothing.
type live struct {
	mu sync.Mutex
	// expected has the scopes whose next list must have whole objects, with the time of the last progress of that
	// list: its start, or a page; zero before.
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

// expect requests that the next list of a scope has whole objects.
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

// until returns the time until which callers may wait for the list of whole objects that is expected of a scope.
func (l *live) until(s scope) (_ time.Time, expected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, expected := l.expected[s]
	if last.IsZero() {
		last = time.Now() // The list waits for other lists.
	}
	return last.Add(listedWithin), expected
}

// progressed records progress of the list of whole objects of a scope: its start, or a page.
func (l *live) progressed(s scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, expected := l.expected[s]; expected {
		l.expected[s] = time.Now()
	}
}

// begin waits until a list of whole objects may start, and returns the function that requests its pages; the caller
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

// listed ends a list; if it was complete, no other one is expected.
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

// keep caches an object of the list of a packer, with the count of its record (Revision.Requested). It drops the
// managed fields.
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
	if old, found := l.cached[uid]; found { // The list was begun anew.
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

// take hands out the object with a UID, nil if it is not cached, or a check was requested since.
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

// readers are used again: a new one costs more than its input.
var readers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

func (p packed) unpack() ([]byte, error) {
	reader := readers.Get().(io.ReadCloser)
	defer readers.Put(reader)
	if err := reader.(flate.Resetter).Reset(bytes.NewReader(p.bytes), p.dictionary); err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// packer packs the objects of one list, one after the other. They resemble each other, so that the first one is the
// dictionary of all.
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

// Expect announces, before the watches start, the objects that are about to be compared: their kinds are listed as
// whole objects then, for FromList.
func (w *Watches) Expect(owner objects.Owner, refs []objects.Ref) {
	if !w.disabled {
		for s := range w.scopesOf(refs) {
			w.live.expect(s)
		}
	}
	w.Track(owner, refs)
}

// FromList returns an object as a list of its kind had it, if a watch has covered the object since and reported no
// change; else nil. Each object is taken from a list once; every write that is based on it must carry its resource
// version.
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
