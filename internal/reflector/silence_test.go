package reflector

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const deadline = 10 * time.Second

// apiServer answers lists with one object, and watches with what a test says and then with nothing until the client goes.
type apiServer struct {
	mu      sync.Mutex
	queries []url.Values
	// events are the answers to watches, one after the other; the last one is repeated. Nothing is answered where it is "hangs".
	events []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	s.queries = append(s.queries, query)
	events := ""
	if query.Get("watch") == "true" && len(s.events) > 0 {
		if events = s.events[0]; len(s.events) > 1 {
			s.events = s.events[1:]
		}
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if query.Get("watch") != "true" {
		_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"listed"}}]}`)
		return
	}
	if events != "hangs" {
		_, _ = io.WriteString(w, events)
		w.(http.Flusher).Flush()
	}
	<-r.Context().Done()
}

func (s *apiServer) asked() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.queries...)
}

// following returns a follower of Shoots or, as whole objects, of Namespaces.
func following(t *testing.T, whole bool, s *apiServer) (*Follower, *clocktesting.FakeClock) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	kind := Kind{
		Name: "Shoot", Resource: gardencorev1beta1.GroupVersion.WithResource("shoots"), New: func() runtime.Object { return &gardencorev1beta1.Shoot{} },
		Set: func(runtime.Object) {}, Remove: func(string, string) {}, Retain: func(Names) {},
	}
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), gardencorev1beta1.GroupVersion)
	if whole {
		kind.Name, kind.Resource, kind.New, kind.Whole = "Namespace", corev1.SchemeGroupVersion.WithResource("namespaces"), func() runtime.Object { return &corev1.Namespace{} }, true
		client, err = NewWholeClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), corev1.SchemeGroupVersion, scheme.Scheme)
	}
	must.Succeed(t, err)
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	return New(kind, client, clock, logr.Discard()), clock
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(deadline); !is(); {
		must.False(t, time.Now().After(until), "%v", what)
		time.Sleep(time.Millisecond)
	}
}

// next returns the next event of a stream, or false at its end.
func next(t *testing.T, w watch.Interface) (watch.Event, bool) {
	t.Helper()
	select {
	case event, open := <-w.ResultChan():
		return event, open
	case <-time.After(deadline):
		t.Fatal("nothing comes, and the stream does not end")
		return watch.Event{}, false
	}
}

const (
	added    = `{"type":"ADDED","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"6"}}}` + "\n"
	bookmark = `{"type":"BOOKMARK","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"resourceVersion":"8"}}}` + "\n"
)

// TestSilence: a stream that nothing is heard of for two minutes is opened anew; the second time in a row everything is listed anew.
func TestSilence(t *testing.T) {
	for name, whole := range map[string]bool{"slices": false, "whole objects": true} {
		t.Run(name, func(t *testing.T) {
			f, clock := following(t, whole, &apiServer{events: []string{added + bookmark, ""}})
			open := func() watch.Interface {
				t.Helper()
				w, err := f.watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
				must.Succeed(t, err)
				eventually(t, "nobody waits", clock.HasWaiters)
				return w
			}
			w := open()
			for range 2 {
				if event, _ := next(t, w); event.Type == watch.Error {
					t.Fatalf("got %+v", event)
				}
			}
			clock.Step(patience - time.Second)
			select {
			case event, isOpen := <-w.ResultChan():
				t.Fatalf("a stream that is silent for less than two minutes: got %+v, %v", event, isOpen)
			case <-time.After(20 * time.Millisecond):
			}
			expect.Equal(t, f.Silence(), patience-time.Second, "the silence")
			eventually(t, "nobody waits any more", clock.HasWaiters)
			clock.Step(2 * time.Second)
			if event, isOpen := next(t, w); isOpen {
				t.Fatalf("after two minutes of silence: got %+v, want the end, from where the reflector goes on", event)
			}
			w.Stop()

			w = open()
			if got := f.Silence(); got < patience {
				t.Errorf("a stream that could be opened is taken for a sign of life: the silence is %v", got)
			}
			clock.Step(patience)
			if event, isOpen := next(t, w); !isOpen || event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
				t.Fatalf("after two silent streams: got %+v, %v, want one that makes the reflector list anew", event, isOpen)
			}
			w.Stop()
			must.Succeed(t, expect.ErrorOf(f.list(t.Context(), metav1.ListOptions{})))
			expect.Equal(t, f.Silence(), 0, "after a list the silence")
			eventually(t, "somebody still waits", func() bool { return !clock.HasWaiters() })
		})
	}
}

// TestSilentOpening: an API server that takes a connection and answers nothing is not awaited without end.
func TestSilentOpening(t *testing.T) {
	f, clock := following(t, false, &apiServer{events: []string{"hangs"}})
	failed := make(chan error)
	go func() {
		_, err := f.watch(t.Context(), metav1.ListOptions{})
		failed <- err
	}()
	eventually(t, "nobody waits", clock.HasWaiters)
	clock.Step(patience)
	select {
	case err := <-failed:
		expect.True(t, err != nil, "a stream was opened")
	case <-time.After(deadline):
		t.Fatal("the opening is awaited without end")
	}
}

// TestSilenceCounts is how the silence of a kind is told before and after the first contact.
func TestSilenceCounts(t *testing.T) {
	f, clock := following(t, false, &apiServer{events: []string{""}})
	clock.Step(time.Minute)
	expect.Equal(t, f.Silence(), 0, "before the start")
	f.contact.start()
	clock.Step(time.Minute)
	expect.Equal(t, f.Silence(), time.Minute, "a minute after the start, with nothing heard")
	f.contact.heard()
	clock.Step(time.Second)
	expect.Equal(t, f.Silence(), time.Second, "a second after something was heard")
}

// TestQuestions: bookmarks are asked for, and a list in pages is one of the latest state.
func TestQuestions(t *testing.T) {
	s := &apiServer{events: []string{added}}
	f, _ := following(t, false, s)
	w, err := f.watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})
	must.Succeed(t, err)
	w.Stop()
	must.Succeed(t, expect.ErrorOf(f.list(t.Context(), metav1.ListOptions{ResourceVersion: "5", Limit: 500})))
	asked := s.asked()
	expect.True(t, asked[0].Get("allowWatchBookmarks") == "true" && asked[0].Get("resourceVersion") == "5",
		"a watch: %v", asked[0])
	expect.True(t, asked[1].Get("resourceVersion") == "" && asked[1].Get("limit") == "500",
		"the first page after a restart: %v, which is a list of exactly what was known before", asked[1])
}

// TestRecovers: what a stream that died unseen did not bring comes with the next one.
func TestRecovers(t *testing.T) {
	const ended = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	f, clock := following(t, false, &apiServer{events: []string{added + ended, added + ended + `{"type":"MODIFIED","object":{"metadata":{"name":"late","resourceVersion":"9"}}}` + "\n"}})
	names := make(chan string, 100)
	f.Set = func(object runtime.Object) { names <- object.(*gardencorev1beta1.Shoot).Name }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f.Start(ctx)
	eventually(t, "never synced", f.Synced)
	eventually(t, "nobody waits", clock.HasWaiters)
	clock.Step(patience)
	eventually(t, "what came meanwhile is never seen", func() bool {
		select {
		case name := <-names:
			return name == "late"
		default:
			return false
		}
	})
}
