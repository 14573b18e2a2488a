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
