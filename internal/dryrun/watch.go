package dryrun

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// feed is a watch with the events of the API server and those of writes that were not sent.
type feed struct {
	server   *Server
	q        *request
	of       collection
	selected *selection

	mu      sync.Mutex
	pending bytes.Buffer
	notify  chan struct{}
}

// watch opens a watch. A watch that begins with a list (sendInitialEvents) is refused, so that client-go lists first.
func (t *transport) watch(r *http.Request, q *request) (*http.Response, error) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		return respond(r, http.StatusUnprocessableEntity, metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "sendInitialEvents is not supported",
		}), nil
	}
	selected, err := selectionOf(r, q)
	if err != nil {
		return nil, err
	}
	f := &feed{server: t.Server, q: q, of: q.collection, selected: selected, notify: make(chan struct{}, 1)}
	t.join(f) // Before the watch begins, so that no write is missed.
	if t.defines(q) {
		answer := respond(r, http.StatusOK, nil)
		answer.ContentLength, answer.Body = -1, f.mixed(silence())
		return answer, nil
	}
	answer, err := t.forward(inJSON(r), q)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.leave(f)
		return answer, err
	}
	answer.Body = f.mixed(answer.Body)
	return answer, nil
}

// join adds a feed. The feed begins with all overlays of its collection, because the client's list may be older.
func (s *Server) join(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[f] = struct{}{}
	for _, e := range s.entries[f.of] {
		f.add(e.before, e.object)
	}
}

func (s *Server) leave(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.feeds, f)
}

// add adds the event of a write. A new object is an ADDED or a MODIFIED event: client-go treats both alike.
func (f *feed) add(before, after object) {
	event := "MODIFIED"
	switch had, has := f.selected.has(before), f.selected.has(after); {
	case has && !had:
		event = "ADDED"
	case !has && !had:
		return
	case !has:
		event = "DELETED"
		if after == nil {
			after = before
		}
	}
	line, err := json.Marshal(object{"type": event, "object": shown(f.q, after)})
	if err != nil {
		return // The object was decoded from JSON.
	}
	f.mu.Lock()
	f.pending.Write(append(line, '\n'))
	f.mu.Unlock()
	select {
	case f.notify <- struct{}{}:
	default: // A notification is already pending.
	}
}

func (f *feed) take() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	content := bytes.Clone(f.pending.Bytes())
	f.pending.Reset()
	return content
}

// mixed returns the body of a watch with the events of the API server and of the feed.
func (f *feed) mixed(upstream io.ReadCloser) io.ReadCloser {
	reader, writer := io.Pipe()
	lines, over := make(chan []byte), make(chan struct{})
	end := sync.OnceFunc(func() {
		close(over)
		f.server.leave(f)
		_ = upstream.Close()
		_ = reader.Close()
	})
	go func() {
		defer close(lines)
		for in := bufio.NewReader(upstream); ; {
			line, err := in.ReadBytes('\n')
			if len(line) > 0 {
				select {
				case lines <- line:
				case <-over:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer end()
		defer writer.Close() //nolint:errcheck // It returns none.
		for {
			var content []byte
			select {
			case <-over:
				return
			case <-f.notify:
				content = f.take()
			case line, more := <-lines:
				if !more {
					return
				}
				content = f.passed(line)
			}
			if _, err := writer.Write(content); err != nil {
				return
			}
		}
	}()
	return &ended{io.NopCloser(reader), end}
}

// passed returns an event of the API server, or nothing if an overlay replaces the version in it.
func (f *feed) passed(line []byte) []byte {
	if !f.server.has(f.of) {
		return line
	}
	var event struct {
		Type   string `json:"type"`
		Object object `json:"object"`
	}
	if json.Unmarshal(line, &event) != nil || event.Type == "BOOKMARK" || event.Type == "ERROR" {
		return line
	}
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if _, found := f.server.overLocked(keyIn(f.of, event.Object), versionOf(event.Object)); found && event.Type != "DELETED" {
		return nil
	}
	return line
}
