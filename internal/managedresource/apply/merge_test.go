package apply

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/must"
)

// newApplier returns an Applier of a source with an identity, whose target is that server, without watches. The
// ManagedResource m exists.
func newApplier(t *testing.T, serve http.HandlerFunc, identity string) *Applier {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	to, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), target.NewMetrics(prometheus.NewRegistry()))
	must.Succeed(t, err)
	scheme := runtime.NewScheme()
	must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
	clock, c := clocktesting.NewFakePassiveClock(time.Now()), crfake.NewClientBuilder().WithScheme(scheme).WithObjects(managed("m")).Build()
	tracker, class, statuses := objects.New(), meta.NewClass(""), source.NewStatuses(c, c, c, clock, nil)
	return New(Options{
		Target: to, Tracker: tracker, Clock: clock, Statuses: statuses, Source: steps.Source{Statuses: statuses, Class: class},
		Watches: target.NewWatches(to, tracker, target.WatchOptions{Log: logr.Discard(), Disabled: true}),
		Owners:  steps.Owners{Identity: identity, Tracker: tracker, Class: class, Statuses: statuses},
	})
}

// managed returns a ManagedResource of a name, without objects.
func managed(name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "u"}}
}

// knowAutoscalers waits for the list of autoscalers.
func (a *Applier) knowAutoscalers(t *testing.T) {
	t.Helper()
	must.Succeed(t, a.Watches.Autoscalers().Ready(t.Context()))
}

// MR-21, promise about changes of leader: after a restart replicas stay as an autoscaler set them that is not there, and everything else is as the
// manifest says. Replicas that somebody else set are put right at once.
func TestReplicasStayAfterARestart(t *testing.T) {
	t.Parallel()
	for subresource, want := range map[string]int64{"scale": 5, "": 1} {
		t.Run(subresource, func(t *testing.T) {
			asked := 0
			applier := newApplier(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch r.URL.Path {
				case "/apis/autoscaling/v1":
					_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"autoscaling/v1","resources":[{"name":"horizontalpodautoscalers","namespaced":true,"kind":"HorizontalPodAutoscaler"}]}`)
				case "/apis/apps/v1":
					_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment"}]}`)
				case "/apis/autoscaling/v1/horizontalpodautoscalers":
					_, _ = fmt.Fprint(w, `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
				case "/apis/apps/v1/namespaces/n/deployments/web":
					asked++
					_, _ = fmt.Fprintf(w, `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"namespace":"n","name":"web","managedFields":[
						{"manager":"x","operation":"Update","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":%q}]},"spec":{"replicas":5}}`, subresource)
				default:
					http.NotFound(w, r)
				}
			}, "")
			applier.knowAutoscalers(t)

			desired := &plan.Desired{Ref: objects.Ref{ID: objects.ID{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "web"}}, Unstructured: deployment(1, false)}
			a := &attempt{Run: applier.Begin(managed("m"), &plan.Plan{}, nil, nil), desired: desired, live: deployment(5, true)}
			must.Succeed(t, a.inherit(t.Context()))
			merged := a.merge(a.live)
			if kept := a.options.HorizontallyScaled; kept && a.digest != desiredDigest(desired, a.options) || !kept && a.digest != 0 {
				t.Errorf("it is concluded with %d: the end of the grace would be drift", a.digest)
			}
			if paused, _, _ := unstructured.NestedBool(merged.Object, "spec", "paused"); replicasOf(merged) != want || paused {
				t.Errorf("%d replicas, paused %t, want %d and false", replicasOf(merged), paused, want)
			}
			before := asked
			a.live, a.options = deployment(1, true), merge.Options{}
			if err := a.inherit(t.Context()); err != nil || asked != before {
				t.Errorf("it is read though its replicas are as the manifest says: %v", err)
			}
		})
	}
}

// MR-20: an object whose turn in its tier comes late is merged by what is known of autoscalers then, not when the tier began: the doubt that told of the
// difference came before its look.
func TestOptionsAreOfTheLook(t *testing.T) {
	t.Parallel()
	items := ""
	applier := newApplier(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/autoscaling/v1":
			_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"autoscaling/v1","resources":[{"name":"horizontalpodautoscalers","namespaced":true,"kind":"HorizontalPodAutoscaler"}]}`)
		case "/apis/autoscaling/v1/horizontalpodautoscalers":
			_, _ = fmt.Fprintf(w, `{"kind":"HorizontalPodAutoscalerList","apiVersion":"autoscaling/v1","metadata":{"resourceVersion":"1"},"items":[%s]}`, items)
		default:
			http.NotFound(w, r)
		}
	}, "")
	applier.knowAutoscalers(t)
	desired := &plan.Desired{Ref: objects.Ref{ID: objects.ID{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "web"}}, Unstructured: deployment(1, false)}
	a := applier.Begin(managed("m"), &plan.Plan{}, nil, nil)
	planned := a.options(desired)
	items = `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1","metadata":{"namespace":"n","name":"h","uid":"u"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`
	applier.knowAutoscalers(t)
	now := a.newAttempt(desired)
	defer now.ticket.End()
	options, digest := now.options, now.digest
	if planned.HorizontallyScaled || !options.HorizontallyScaled || digest != desiredDigest(desired, options) {
		t.Errorf("planned as scaled %t, looked at as scaled %t, its digest is of that: %t", planned.HorizontallyScaled, options.HorizontallyScaled, digest == desiredDigest(desired, options))
	}
}

func deployment(replicas int64, paused bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "n", "name": "web"},
		"spec": map[string]any{"replicas": replicas, "paused": paused},
	}}
}
