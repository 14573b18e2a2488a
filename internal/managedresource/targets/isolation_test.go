package targets

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster/answers"
	"github.com/espalier-project/espalier/test/fake"
)

// inTrouble runs a test with five targets, of which the first one gets into trouble once all are applied.
func inTrouble(t *testing.T, test func(s *seed, hostile *shoot, others []string)) {
	names := []string{"hostile", "shoot-a", "shoot-b", "shoot-c", "shoot-d"}
	fewBytes := func(c *config.ResourceManagerConfiguration) {
		c.Targets.Limits.BytesInFlight = ptr.To(resource.MustParse("4Mi")) // So that an endless answer ends soon.
	}
	inBubble(t, fewBytes, names, func(s *seed) {
		for _, name := range names {
			s.access(name, "first")
			for _, mr := range []string{"addons", "system"} {
				s.managed(name, mr, 5)
			}
		}
		for _, name := range names {
			s.within(soon, name+" is applied", s.applied(name, "addons"))
			s.within(soon, name+" is applied", s.applied(name, "system"))
		}
		time.Sleep(time.Minute)
		test(s, s.targets["hostile"], names[1:])
	})
}

// fine fails unless the drift of all targets is repaired as fast as ever.
func (s *seed) fine(id string, others []string) {
	s.t.Helper()
	// Another object each time: what drifts again and again is repaired ever later.
	drifts := fmt.Sprintf("%s-%d", []string{"addons", "system"}[s.drifted/5%2], s.drifted%5)
	s.drifted++
	for _, name := range others {
		if took := s.drifts(name, drifts, soon); took > 50*time.Millisecond {
			s.t.Errorf("%s: the drift of %s is repaired after %s", id, name, took)
		}
	}
}

// TestHangingTarget: a target that answers no request, and one that never ends an answer, costs others nothing.
func TestHangingTarget(t *testing.T) {
	for name, hangs := range map[string]func(*http.Request) (*http.Response, error){
		"TGT-10/no answer": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"TGT-10/a slow body": func(r *http.Request) (*http.Response, error) { return answer(r, &slow{r}), nil },
	} {
		t.Run(name, func(t *testing.T) {
			inTrouble(t, func(s *seed, hostile *shoot, others []string) {
				hostile.meets(hangs)
				hostile.CutWatches(func(string, *fake.Kind) bool { return true })
				for range 10 {
					// Each of its ManagedResources has work all the time.
					for _, mr := range []string{"addons", "system"} {
						s.must(s.source, http.MethodPatch, "/apis/resources.gardener.cloud/v1alpha1/namespaces/hostile/managedresources/"+mr,
							map[string]any{"metadata": map[string]any{"annotations": map[string]any{"gardener.cloud/operation": "reconcile"}}})
					}
					s.fine("TGT-10", others)
					time.Sleep(20 * time.Second)
				}
				hostile.meets(nil)
				s.within(5*time.Minute, "it recovers", s.applied("hostile", "addons"))
			})
		})
	}
}

// TestFloodingTarget: a target whose objects change all the time, under which its repairs fight, costs others nothing.
func TestFloodingTarget(t *testing.T) {
	inTrouble(t, func(s *seed, hostile *shoot, others []string) {
		for i := range 500 {
			for _, object := range []string{"addons-0", "addons-1", "system-0", "system-1"} {
				send(hostile.Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/"+object, map[string]any{"data": map[string]any{"of": strings.Repeat("x", i)}})
			}
			if i%50 == 0 {
				s.fine("TGT-11", others)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// TestPanickingTarget: a panic in the work for a target ends its engine, and no other; it begins again after a pause.
func TestPanickingTarget(t *testing.T) {
	for name, on := range map[string]func(*http.Request) bool{
		"TGT-12/a list":    func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/configmaps") && !answers.IsWatch(r) },
		"TGT-12/discovery": func(r *http.Request) bool { return r.URL.Path == "/api/v1" },
	} {
		t.Run(name, func(t *testing.T) {
			inTrouble(t, func(s *seed, hostile *shoot, others []string) {
				hostile.meets(func(r *http.Request) (*http.Response, error) {
					if on(r) {
						panic("on purpose")
					}
					return nil, nil
				})
				s.access("hostile", "first")
				s.must(s.source, http.MethodDelete, "/api/v1/namespaces/hostile/secrets/access", nil)
				s.within(soon, "it ends", s.is("hostile", StateNoAccess))
				s.access("hostile", "first")
				s.within(time.Minute, "it panics", s.is("hostile", StatePanicked))
				s.fine("TGT-12", others)
				events := s.sent("source event")
				time.Sleep(time.Hour)
				if n := s.sent("source event") - events; n > 60 {
					t.Errorf("TGT-12: %d Events in an hour", n)
				}
				s.fine("TGT-12", others)
				hostile.meets(nil)
				s.within(2*lastPause, "it goes on", s.is("hostile", StateRunning))
				s.fine("TGT-12", append(others, "hostile"))
			})
		})
	}
}

// TestEndlessBody: an answer without an end fails at the limit of its target, and the others' answers do not.
func TestEndlessBody(t *testing.T) {
	inTrouble(t, func(s *seed, hostile *shoot, others []string) {
		hostile.meets(func(r *http.Request) (*http.Response, error) {
			if answers.IsWatch(r) {
				return nil, nil
			}
			return answer(r, endless{}), nil
		})
		hostile.CutWatches(func(string, *fake.Kind) bool { return true })
		for _, mr := range []string{"addons", "system"} {
			s.must(s.source, http.MethodPatch, "/apis/resources.gardener.cloud/v1alpha1/namespaces/hostile/managedresources/"+mr,
				map[string]any{"metadata": map[string]any{"annotations": map[string]any{"gardener.cloud/operation": "reconcile"}}})
		}
		send(hostile.Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/addons-0", map[string]any{"data": map[string]any{"of": "x"}})
		time.Sleep(time.Second)
		s.fine("TGT-13", others)
		if n := counted(t, s.registry, "espalier_target_answers_exceeded_total"); n == 0 {
			t.Error("TGT-13: no answer was cut")
		}
		hostile.meets(nil)
		s.within(5*time.Minute, "it recovers", func() bool { return fake.Text(s.configMap("hostile", "addons-0"), "data", "of") == "hostile" })
	})
}

// answer is one of JSON.
func answer(r *http.Request, body io.Reader) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(body), ContentLength: -1, Request: r,
	}
}

// slow is a body of which a byte comes each second.
type slow struct{ request *http.Request }

func (s *slow) Read(p []byte) (int, error) {
	select {
	case <-s.request.Context().Done():
		return 0, s.request.Context().Err()
	case <-time.After(time.Second):
		return copy(p[:1], " "), nil
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, spaces), nil }

var spaces = bytes.Repeat([]byte(" "), 1<<20)
