package target

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// servesNothing answers everything with 404, after a while.
type servesNothing struct{ asked atomic.Int32 }

func (s *servesNothing) RoundTrip(request *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	time.Sleep(time.Millisecond)
	return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: request}, nil
}

// Economy, MRT-9: whatever is to be watched of kinds of a group that is not served, the group is asked for every ten seconds and not more often.
func TestUnservedKindsAreAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &servesNothing{}
		client, err := NewClient(&rest.Config{Host: "http://target", QPS: -1}, &http.Client{Transport: transport}, NewMetrics(prometheus.NewRegistry()))
		must.Succeed(t, err)
		w := NewWatches(client, objects.New(), WatchOptions{Log: logr.Discard()})
		go func() { _ = w.Start(t.Context()) }()
		synctest.Wait()
		for _, name := range []string{"a", "b", "c"} {
			ref := refTo(widgets, "n", name)
			w.Track(objects.Owner{Namespace: "n", Name: name}, []objects.Ref{ref, refTo(widgets, "n", "labelled")})
			time.Sleep(time.Second)
		}
		first := transport.asked.Load()
		time.Sleep(time.Minute)
		if got := transport.asked.Load() - first; got != 6 || first == 0 {
			t.Errorf("MRT-9: its watches asked %d times in a minute, want 6, and %d times at first", got, first)
		}
	})
}

// MRB-40: a kind that is not served any more took its objects with it, and no watch told of that. Their ManagedResources are judged at once, and not
// at the end of a period.
func TestObjectsOfAnEndedKindAreJudged(t *testing.T) {
	s, client := newServer(t)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	s.put(widgets, "n", "a", nil)
	s.put(configMaps, "n", "other", nil)
	other := objects.Owner{Namespace: "n", Name: "other"}
	var judged sync.Map
	l.Subscribe(objects.Subscriber{Health: func(owner objects.Owner) { judged.Store(owner, true) }})
	w.Track(owner, []objects.Ref{refTo(widgets, "n", "a")})
	w.Track(other, []objects.Ref{refTo(configMaps, "n", "other")})
	for _, ref := range []objects.Ref{refTo(widgets, "n", "a"), refTo(configMaps, "n", "other")} {
		eventually(t, "known", func() bool { return l.Get(ref.ID).Present && w.Covered(ref) })
	}
	judged.Clear()
	s.withdraw(widgets)
	eventually(t, "MRB-40: the owner of an object of a kind that ended is judged", func() bool { _, found := judged.Load(owner); return found })
	expect.False(t, expect.OK(judged.Load(other)), "MRB-40: the owner of an object of another kind is judged, too")
}
