package fake

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// bookmarkEvery is how often an idle watch is told how far it is.
const bookmarkEvery = time.Minute

// stream is one watch: the body of its answer. Events wait in it until they are due; reading moves no other time but the
// reader's.
type stream struct {
	server   *Server
	by       string
	kind     *Kind
	selected func(Key, Object) bool
	partial  bool
	bookmark bool
	ctx      context.Context
	deadline time.Time
	// delay says how late an event that happens now arrives; it may be negative for none.
	delay func() time.Duration
	// from is the revision that the client knows: events and bookmarks up to it are not sent. loses is until when events are lost.
	from  int64
	loses time.Time

	mu      sync.Mutex
	queue   []frame
	buffer  []byte
	over    bool
	err     error
	lastDue time.Time
	news    chan struct{}
	marked  time.Time
}

type frame struct {
	due  time.Time
	line []byte
	last bool
}

// deliver queues what a record means for this watch.
func (w *stream) deliver(r record, last Object) {
	if r.revision <= w.from || time.Now().Before(w.loses) {
		return
	}
	was := r.before != nil && w.selected(r.key, r.before)
	is := r.after != nil && w.selected(r.key, r.after)
	switch {
	case is && was:
		w.push("MODIFIED", r.after)
	case is:
		w.push("ADDED", r.after)
	case was && r.after == nil:
		w.push("DELETED", last)
	case was:
		gone := runtime.DeepCopyJSON(r.before)
		meta(gone)["resourceVersion"] = strconv.FormatInt(r.revision, 10)
		w.push("DELETED", gone)
	}
}

func (w *stream) push(event string, o Object) {
	w.send(event, w.server.encode(o, w.partial))
}

func (w *stream) send(event string, object []byte) {
	line := told(event, object)
	w.mu.Lock()
	defer w.mu.Unlock()
	due := time.Now().Add(w.delay())
	if due.Before(w.lastDue) {
		due = w.lastDue
	}
	w.lastDue = due
	w.queue = append(w.queue, frame{due: due, line: line, last: event == "ERROR"})
	w.wakeLocked()
}

func (w *stream) wakeLocked() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *stream) pushBookmark(revision int64, initialEnd bool) {
	if revision < w.from {
		return
	}
	metadata := Object{"resourceVersion": strconv.FormatInt(revision, 10), "creationTimestamp": nil}
	if initialEnd {
		metadata["annotations"] = Object{"k8s.io/initial-events-end": "true"}
	}
	bookmark := Object{"kind": w.kind.Kind, "apiVersion": w.kind.GroupVersion().String(), "metadata": metadata}
	if w.partial {
		bookmark = partialOf(bookmark)
	}
	w.send("BOOKMARK", mustMarshal(bookmark))
}

// end ends the watch as a server does that closes it. The caller has the server's lock.
func (w *stream) end() {
	delete(w.server.watches, w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, frame{due: time.Now(), last: true})
	w.wakeLocked()
}

// Read implements io.Reader.
func (w *stream) Read(p []byte) (int, error) {
	for {
		n, wait, err := w.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.ctx.Done():
			timer.Stop()
			if w.server.QuietEnd {
				return 0, io.EOF
			}
			return 0, w.ctx.Err()
		case <-w.news:
		case <-timer.C:
			w.tick()
		}
		timer.Stop()
	}
}

func (w *stream) take(p []byte) (int, time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for len(w.buffer) == 0 && !w.over && len(w.queue) > 0 && !w.queue[0].due.After(now) {
		head := w.queue[0]
		w.queue = w.queue[1:]
		w.buffer, w.over = head.line, head.last
	}
	if len(w.buffer) > 0 {
		n := copy(p, w.buffer)
		w.buffer = w.buffer[n:]
		return n, 0, nil
	}
	if w.over {
		if w.err != nil {
			return 0, 0, w.err
		}
		return 0, 0, io.EOF
	}
	if len(w.queue) > 0 {
		return 0, w.queue[0].due.Sub(now), nil // What happened before the deadline is told, however late it arrives.
	}
	wait := w.deadline.Sub(now)
	if w.bookmark {
		wait = min(wait, w.marked.Add(bookmarkEvery).Sub(now))
	}
	return 0, max(wait, 0), nil
}

// tick does what is due by the clock alone.
func (w *stream) tick() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	now := time.Now()
	w.mu.Lock()
	idle := len(w.queue) == 0
	w.mu.Unlock()
	_, open := w.server.watches[w]
	switch {
	case !open || !idle:
	case !now.Before(w.deadline):
		w.end()
	case w.bookmark && !now.Before(w.marked.Add(bookmarkEvery)):
		w.marked = now
		w.pushBookmark(w.server.revision, false)
	}
}

// Close implements io.Closer.
func (w *stream) Close() error {
	w.server.mu.Lock()
	delete(w.server.watches, w)
	w.server.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.wakeLocked()
	return nil
}

func partialOf(o Object) Object {
	return Object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
}
