package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// byPath are the answers of a target by path; a code of zero is none at all.
type byPath func(path string) (body any, code int)

func (f byPath) RoundTrip(r *http.Request) (*http.Response, error) {
	body, code := f(r.URL.Path)
	if code == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	content, _ := json.Marshal(body)
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(content))), Request: r}, nil
}

func kindsOf(gv, resource, kind string) (any, int) {
	return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": []any{map[string]any{"name": resource, "namespaced": true, "kind": kind}}}, 200
}

func assessorOf(t *testing.T, target byPath) *Assessor {
	t.Helper()
	client, err := NewClient(&rest.Config{Host: "http://target", QPS: -1}, &http.Client{Transport: target}, NewMetrics(prometheus.NewRegistry()))
	must.Succeed(t, err)
	l := objects.New()
	return NewAssessor(client, l, NewWatches(client, l, WatchOptions{}), clocktesting.NewFakePassiveClock(time.Now()))
}

func inventoryEntry(apiVersion, kind, name string) resourcesv1alpha1.ObjectReference {
	return resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "n", Name: name}}
}

// MRP-2: an object of a kind whose roll-out nobody judges hides no other one, if it cannot be read.
func TestProgressingLooksAtItsKinds(t *testing.T) {
	for name, code := range map[string]int{"refused": 403, "broken": 500, "hangs": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := assessorOf(t, func(path string) (any, int) {
					switch {
					case path == "/apis/autoscaling.k8s.io/v1":
						return kindsOf("autoscaling.k8s.io/v1", "verticalpodautoscalers", "VerticalPodAutoscaler")
					case path == "/apis/apps/v1":
						return kindsOf("apps/v1", "daemonsets", "DaemonSet")
					case strings.Contains(path, "/daemonsets/"):
						return map[string]any{"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": map[string]any{"namespace": "n", "name": "d", "uid": "d", "resourceVersion": "5", "generation": 2},
							"status": map[string]any{"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 1}}, 200
					}
					return map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}, code
				})
				refs := []resourcesv1alpha1.ObjectReference{inventoryEntry("apps/v1", "DaemonSet", "d"), inventoryEntry("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "v")}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				assessment, err := a.Assess(ctx, refs)
				if err != nil || assessment.Progressing.Message != `DaemonSet "n/d" is progressing: 1 of 3 replica(s) have been updated` {
					t.Errorf("MRP-2: a VerticalPodAutoscaler, whose roll-out nobody judges, hides that of a DaemonSet: got %q, %v", assessment.Progressing.Message, err)
				}
			})
		})
	}
}

// MRX-13, MRB-35: Events that cannot be read in time are left out, and what is unhealthy is told.
func TestEventsThatHang(t *testing.T) {
	for _, number := range []int{3, 7} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := assessorOf(t, func(path string) (any, int) {
					switch {
					case path == "/api/v1":
						return kindsOf("v1", "services", "Service")
					case path == "/apis/apps/v1":
						return kindsOf("apps/v1", "statefulsets", "StatefulSet")
					case strings.Contains(path, "/services/"):
						name := path[strings.LastIndex(path, "/")+1:]
						return map[string]any{"kind": "Service", "apiVersion": "v1", "metadata": map[string]any{"namespace": "n", "name": name, "uid": name, "resourceVersion": "5"}, "spec": map[string]any{"type": "LoadBalancer"}}, 200
					case strings.Contains(path, "/statefulsets/"):
						return map[string]any{"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": map[string]any{"namespace": "n", "name": "s", "uid": "s", "resourceVersion": "5"}}, 200
					}
					return nil, 0 // Events.
				})
				var refs []resourcesv1alpha1.ObjectReference
				for i := range number {
					refs = append(refs, inventoryEntry("v1", "Service", fmt.Sprint("lb", i)))
				}
				refs = append(refs, inventoryEntry("apps/v1", "StatefulSet", "s")) // As inventories are sorted.
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)       // What the controllers of health take: the sync period.
				defer cancel()
				began := time.Now()
				assessment, err := a.Assess(ctx, refs)
				if err != nil || !strings.HasPrefix(assessment.Health.Message, `Service "n/lb0" is unhealthy: service is missing ingress status`) {
					t.Errorf("MRX-13: after %s got %q, %v (late: %t)", time.Since(began), assessment.Health.Message, err, errors.Is(ctx.Err(), context.DeadlineExceeded))
				}
			})
		})
	}
}

// MRX-13: Events are read of the Services that a condition names.
func TestEventsOfNamedServices(t *testing.T) {
	const services = 300
	s, client := newServer(t)
	service, events := schema.GroupVersionKind{Version: "v1", Kind: "Service"}, schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	s.serve(service, "services", true)
	s.serve(events, "events", true)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	var refs []resourcesv1alpha1.ObjectReference
	var entries []objects.Ref
	for i := range services {
		s.put(service, "n", fmt.Sprint("lb", i), map[string]any{"spec": map[string]any{"type": "LoadBalancer"}})
		refs = append(refs, inventoryEntry("v1", "Service", fmt.Sprint("lb", i)))
		entries = append(entries, objects.RefOf(&refs[i]))
	}
	w.Track(owner, entries)
	eventually(t, "covered", func() bool { return w.Covered(entries[0]) && l.Progress(owner).AllKnown })
	a := NewAssessor(client, l, w, clocktesting.NewFakePassiveClock(time.Now()))
	lists := s.count("list")
	assessment, err := a.Assess(t.Context(), refs)
	must.True(t, err == nil && assessment.Problem, "%v, %v", assessment, err)
	got := s.count("list") - lists
	expect.True(t, got <= namedProblems, "%d lists of Events for one judgement that names %d objects", got, namedProblems)
}
