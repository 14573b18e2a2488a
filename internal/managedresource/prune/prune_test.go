package prune

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// managed returns a ManagedResource of a name, without objects.
func managed(name string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "u"}}
}

// MRB-16: an object is not handed to a ManagedResource that has dropped it, or is gone, since the claims were read.
func TestNotHandedToWhoDroppedIt(t *testing.T) {
	t.Parallel()
	id := objects.ID{Kind: "ConfigMap", Namespace: "n", Name: "a"}
	for name, heirs := range map[string][]client.Object{
		"MRB-16/dropped": {managed("heir")},
		"MRB-16/gone":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
			clock, c := clocktesting.NewFakePassiveClock(time.Now()), crfake.NewClientBuilder().WithScheme(scheme).WithObjects(heirs...).Build()
			statuses, tracker := source.NewStatuses(c, c, c, clock, nil), objects.New()
			r := New(Options{Tracker: tracker, Owners: steps.Owners{
				Tracker: tracker, Statuses: statuses, Class: meta.NewClass(""),
			}}).newRun(t.Context(), Task{MR: managed("giver")})
			to := ownership.Claim{Owner: steps.OwnerOf(managed("heir")), ID: id}
			expect.ErrorIs(t, r.handOver(t.Context(), id, &unstructured.Unstructured{}, to), errOwnershipPending)
		})
	}
}

// TestCollectableKinds: the label counts on ConfigMaps and Secrets of the core group only.
func TestCollectableKinds(t *testing.T) {
	t.Parallel()
	r := New(Options{GarbageCollector: true, Owners: steps.Owners{Tracker: objects.New()}}).newRun(t.Context(), Task{
		MR: managed("m"),
	})
	for name, tc := range map[string]struct {
		apiVersion, kind string
		stays            bool
	}{
		"MRX-6/a ConfigMap":           {"v1", "ConfigMap", true},
		"MRX-6/a Secret":              {"v1", "Secret", true},
		"MRX-6/a Node":                {"v1", "Node", false},
		"MRX-6/a kind with that name": {"example.org/v1", "Secret", false},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind}}
			live.SetName("x")
			live.SetLabels(map[string]string{resourcesv1alpha1.LabelGarbageCollectableReference: "true"})
			live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "n/m"})
			ref := &resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: tc.apiVersion, Kind: tc.kind, Name: "x"}}
			got, err := r.decide(&objects.Entry{Ref: objects.RefOf(ref), Reference: ref}, live, steps.Claims{})
			expect.True(t, err == nil && (got.Why != "") == tc.stays,
				"it stays because %q, %v; want that it stays: %t", got.Why, err, tc.stays)
		})
	}
}

// TestHolds: finalizers come first, then the conditions of a Namespace or a definition.
func TestHolds(t *testing.T) {
	object := func(apiVersion, kind string, finalizers []any, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"finalizers": finalizers}, "status": map[string]any{"conditions": conditions},
		}}
	}
	remaining := map[string]any{"type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain", "message": "pods. has 3 resource instances"}
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"MRX-12/nothing":      {object("v1", "Namespace", nil), ""},
		"MRX-12/finalizers":   {object("v1", "ConfigMap", []any{"b", "a"}, remaining), "it waits for the finalizers a, b"},
		"MRX-12/a Namespace":  {object("v1", "Namespace", nil, remaining), "SomeResourcesRemain: pods. has 3 resource instances"},
		"MRX-12/a definition": {object("apiextensions.k8s.io/v1", "CustomResourceDefinition", []any{"f"}, map[string]any{"type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress", "message": "x"}), "it waits for the finalizers f; InstanceDeletionInProgress: x"},
	} {
		expect.Equal(t, holdsOf(c.live), c.want, "%s", name)
	}
}

// MRX-12: the message about a Service has its Events also after an error.
func TestEventsBesideAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"EventList","metadata":{},"items":[{"metadata":{"name":"e","namespace":"n"},
				"type":"Warning","message":"quota","source":{"component":"service-controller"}}]}`)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	to, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), target.NewMetrics(prometheus.NewRegistry()))
	must.Succeed(t, err)
	tracker := objects.New()
	watches := target.NewWatches(to, tracker, target.WatchOptions{Log: logr.Discard(), Disabled: true})
	p := New(Options{Target: to, Tracker: tracker, Watches: watches,
		Assessor: target.NewAssessor(to, tracker, watches, clocktesting.NewFakePassiveClock(time.Now()))})
	ref := &resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "n", Name: "s"}}
	r := p.newRun(t.Context(), Task{MR: managed("m")})
	r.wait(&objects.Entry{Ref: objects.RefOf(ref), Reference: ref}, errors.New("refused"))
	expect.Contains(t, r.pending(context.Background())[0].Error(), "quota", "no Events")
}
