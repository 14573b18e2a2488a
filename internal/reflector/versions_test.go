package reflector

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// etcdServer is a kube-apiserver over an etcd that can be restored. Like the real one it sends a watch that is resumed what is later than its
// version, and nothing of a restore; a stream of all objects as of a version that it has not reached is refused.
type etcdServer struct {
	mu       sync.Mutex
	revision int
	objects  map[string]int // their versions by resource/name
	events   []etcdEvent
	// cut ends all streams, and changed wakes them.
	cut, changed chan struct{}
	// lists is how many streams of all objects and lists of them were asked for.
	lists map[string]int
}

type etcdEvent struct {
	revision  int
	kind, key string
}

func newEtcd() *etcdServer {
	return &etcdServer{objects: map[string]int{}, cut: make(chan struct{}), changed: make(chan struct{}), lists: map[string]int{}}
}

func (s *etcdServer) write(resource string, names ...string) {
	for _, name := range names {
		s.do("MODIFIED", resource+"/"+name)
	}
}

func (s *etcdServer) do(kind, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	s.events = append(s.events, etcdEvent{s.revision, kind, key})
	if kind == "DELETED" {
		delete(s.objects, key)
	} else {
		s.objects[key] = s.revision
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// backup returns what puts the present state back.
func (s *etcdServer) backup() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, objects, events := s.revision, maps.Clone(s.objects), slices.Clone(s.events)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.revision, s.objects, s.events = revision, objects, events
	}
}

// interrupt ends all streams.
func (s *etcdServer) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

func (s *etcdServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	path := strings.Split(r.URL.Path, "/")
	resource := path[len(path)-1]
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	if query.Get("watch") != "true" {
		s.list(w, resource, strings.TrimPrefix(query.Get("fieldSelector"), "metadata.name="))
		return
	}
	s.mu.Lock()
	cut := s.cut
	if query.Get("sendInitialEvents") == "true" {
		s.lists[resource]++
		if from > s.revision {
			s.mu.Unlock()
			w.WriteHeader(http.StatusGatewayTimeout)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","code":504,"message":"Too large resource version","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`)
			return
		}
		from = s.revision
		for key, version := range s.objects {
			if of, name, _ := strings.Cut(key, "/"); of == resource {
				_, _ = io.WriteString(w, event("ADDED", name, strconv.Itoa(version)))
			}
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", from)
	}
	for {
		for _, e := range s.events {
			if of, name, _ := strings.Cut(e.key, "/"); e.revision > from && of == resource {
				_, _ = io.WriteString(w, event(e.kind, name, strconv.Itoa(e.revision)))
			}
			from = max(from, e.revision)
		}
		changed := s.changed
		s.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
	}
}

func (s *etcdServer) list(w io.Writer, resource, wanted string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if wanted == "" {
		s.lists[resource]++
	}
	var items []string
	for key, version := range s.objects {
		if of, name, _ := strings.Cut(key, "/"); of == resource && (wanted == "" || name == wanted) {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d"}}`, name, version))
		}
	}
	_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, s.revision, strings.Join(items, ","))
}

// there is what the server has of a resource.
func (s *etcdServer) there(resource string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := world{known: map[string]string{}}
	for key, version := range s.objects {
		if of, name, _ := strings.Cut(key, "/"); of == resource {
			w.known[name] = strconv.Itoa(version)
		}
	}
	return w.String()
}

// listed is how often everything of a resource was asked for.
func (s *etcdServer) listed(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[resource]
}

// followed follows resources of a server; all of them are told of restores together.
func followed(t *testing.T, s http.Handler, resources ...string) (map[string]*world, []*Follower) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), gardencorev1beta1.GroupVersion)
	must.Succeed(t, err)
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	worlds, all := map[string]*world{}, []*Follower{}
	for _, resource := range resources {
		kind := Kind{Name: resource, Resource: gardencorev1beta1.Resource(resource), New: func() runtime.Object { return &gardencorev1beta1.Shoot{} }}
		worlds[resource] = &world{}
		worlds[resource].kind(&kind)
		all = append(all, New(kind, client, clock, logr.Discard()))
	}
	Together(all, clock)
	for _, f := range all {
		f.Start(t.Context())
		eventually(t, "never synced", f.Synced)
	}
	return worlds, all
}

// TestRestored: after a restore of etcd what is known is what there is, though no watch reports it.
func TestRestored(t *testing.T) {
	for name, c := range map[string]struct {
		after    func(*etcdServer) // what is lost
		restored func(*etcdServer) // what happens before watches are resumed
	}{
		"GR-7/etcd is behind":                     {func(s *etcdServer) { s.write("shoots", "a", "new"); s.do("DELETED", "shoots/b") }, func(*etcdServer) {}},
		"GR-7/etcd has passed, an older object":   {func(s *etcdServer) { s.write("shoots", "b", "a") }, func(s *etcdServer) { s.write("seeds", "x", "y", "z") }},
		"GR-7/etcd has passed, a deleted object":  {func(s *etcdServer) { s.do("DELETED", "shoots/b") }, func(s *etcdServer) { s.write("seeds", "x", "y", "z") }},
		"GR-7/behind, and the object was changed": {func(s *etcdServer) { s.write("shoots", "b", "b", "b") }, func(s *etcdServer) { s.write("shoots", "b") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEtcd()
			s.write("shoots", "a", "b", "c")
			worlds, _ := followed(t, s, "shoots")
			restore := s.backup()
			c.after(s)
			eventually(t, "the watch brings nothing", func() bool { return worlds["shoots"].String() == s.there("shoots") })
			lost := s.there("shoots")
			restore()
			c.restored(s)
			must.True(t, s.there("shoots") != lost, "nothing was lost")
			s.interrupt()
			eventually(t, "the restore is not noticed", func() bool { return worlds["shoots"].String() == s.there("shoots") })
			s.write("shoots", "later")
			eventually(t, "nothing comes after the restore", func() bool { return worlds["shoots"].String() == s.there("shoots") })
		})
	}
}

// TestRestoredTogether: a kind whose watch is not interrupted is listed anew because of another one's proof.
func TestRestoredTogether(t *testing.T) {
	s := newEtcd()
	s.write("shoots", "a")
	s.write("seeds", "a")
	worlds, all := followed(t, s, "shoots", "seeds")
	restore := s.backup()
	s.write("seeds", "lost")
	s.write("shoots", "lost")
	for resource, w := range worlds {
		eventually(t, "the watch brings nothing", func() bool { return w.String() == s.there(resource) })
	}
	restore()
	before := s.listed("seeds")
	all[0].taking.Lock()
	end := all[0].end
	all[0].taking.Unlock()
	end(errSilent) // The stream of Shoots alone is opened anew.
	for resource, w := range worlds {
		eventually(t, "GR-7: the restore is not noticed for "+resource, func() bool { return w.String() == s.there(resource) })
	}
	expect.True(t, s.listed("seeds") != before, "GR-7: Seeds are not listed")
}

// TestNoRestore: a watch that is interrupted is resumed where it was, without a list, whatever was changed in the meantime.
func TestNoRestore(t *testing.T) {
	s := newEtcd()
	s.write("shoots", "a", "b")
	worlds, _ := followed(t, s, "shoots")
	s.write("shoots", "c")
	eventually(t, "the watch brings nothing", func() bool { return worlds["shoots"].String() == s.there("shoots") })
	before := s.listed("shoots")
	for _, change := range []func(){func() {}, func() { s.write("shoots", "c") }, func() { s.do("DELETED", "shoots/c") }, func() { s.write("shoots", "d") }} {
		change()
		s.interrupt()
		s.write("shoots", "a")
		eventually(t, "the watch is not resumed", func() bool { return worlds["shoots"].String() == s.there("shoots") })
	}
	got := s.listed("shoots")
	expect.Equal(t, got, before, "GR-7: everything was listed %d times more", got-before)
}

// TestUnchanged: what reports whether a watch may be resumed.
func TestUnchanged(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   func(error) bool
	}{
		"as far as it was":         {200, `{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","resourceVersion":"8"}}]}`, func(err error) bool { return err == nil }},
		"the object is gone":       {200, `{"metadata":{"resourceVersion":"10"},"items":[]}`, func(err error) bool { return err == nil }},
		"GR-7/not as far":          {200, `{"metadata":{"resourceVersion":"8"},"items":[]}`, apierrors.IsResourceExpired},
		"GR-7/an older object":     {200, `{"metadata":{"resourceVersion":"99"},"items":[{"metadata":{"name":"a","resourceVersion":"7"}}]}`, apierrors.IsResourceExpired},
		"versions are no numbers":  {200, `{"metadata":{"resourceVersion":"x"},"items":[{"metadata":{"name":"a","resourceVersion":"y"}}]}`, func(err error) bool { return err == nil }},
		"it cannot tell now":       {500, `{}`, apierrors.IsTooManyRequests},
		"it refuses":               {403, `{"kind":"Status","apiVersion":"v1","reason":"Forbidden","code":403}`, apierrors.IsForbidden},
		"what comes is not a list": {200, `[]`, apierrors.IsTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				expect.True(t, r.URL.Query().Get("fieldSelector") == "metadata.name=a" && strings.HasSuffix(r.URL.Path, "/namespaces/n/shoots"),
					"asked for %s", r.URL)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(c.body, `{"name":`, `{"namespace":"n","name":`))
			}))
			t.Cleanup(server.Close)
			client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), gardencorev1beta1.GroupVersion)
			must.Succeed(t, err)
			kind := Kind{Name: "Shoot", Resource: gardencorev1beta1.Resource("shoots"), New: func() runtime.Object { return &gardencorev1beta1.Shoot{} }}
			f := New(kind, client, clocktesting.NewFakeClock(time.Now()), logr.Discard())
			expect.Succeed(t, f.unchanged(t.Context()), "nothing is known yet")
			shoot := &gardencorev1beta1.Shoot{}
			shoot.Namespace, shoot.Name, shoot.ResourceVersion = "n", "a", "8"
			b := f.begin(&metav1.ListOptions{})
			b.take(watch.Modified, shoot)
			b.take(watch.Bookmark, &gardencorev1beta1.Shoot{Object: partialmeta.Object{ResourceVersion: "9"}})
			if err := f.unchanged(t.Context()); !c.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}
