package istioclusterconfiguration

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/internal/controller/istioclusterconfiguration/envoyfilter"
	"github.com/espalier-project/espalier/internal/externalapi/istio"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// fixture is a reconciler with a rule of namespace a for the gateways of namespace in, over a fake API server.
func fixture(t *testing.T, objects ...client.Object) (*Reconciler, client.Client) {
	t.Helper()
	return meddledFixture(t, func(client.Client, client.Object) {}, objects...)
}

// meddledFixture is a fixture in which somebody else does something before each update.
func meddledFixture(t *testing.T, before func(client.Client, client.Object), objects ...client.Object) (*Reconciler, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: istio.Group, Version: "v1alpha3", Kind: "EnvoyFilter"}, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: istio.Group, Version: "v1alpha3", Kind: "EnvoyFilterList"}, &unstructured.UnstructuredList{})
	server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			options := &client.DeleteOptions{}
			options.ApplyOptions(o)
			if options.Preconditions == nil || options.Preconditions.UID == nil || options.Preconditions.ResourceVersion == nil {
				t.Errorf("%s/%s is deleted without preconditions", object.GetNamespace(), object.GetName())
			}
			return c.Delete(ctx, object)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			before(c, object)
			return c.Update(ctx, object, o...)
		},
	})
	r := New(Options{Client: server, Log: logr.Discard()})
	for _, kind := range []envoyfilter.Kind{envoyfilter.Services, envoyfilter.Namespaces, envoyfilter.Rules, envoyfilter.Filters} {
		r.index.Complete(kind)
	}
	r.index.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}})
	r.index.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "in", Labels: map[string]string{"gardener.cloud/role": "istio-ingress"}}})
	r.index.SetService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", Annotations: map[string]string{envoyfilter.AnnotationExportTo: "*"}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	r.index.SetRule(envoyfilter.RuleOf(&istio.DestinationRule{Object: partialmeta.Object{Namespace: "a", Name: "r"}, Spec: istio.DestinationRuleSpec{Host: "web", ExportTo: []string{"*"}}}))
	return r, server
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}

func existing(server client.Client) (*unstructured.Unstructured, error) {
	object := envoyfilter.Empty("in", "a-cluster-configuration")
	return object, server.Get(context.Background(), client.ObjectKeyFromObject(object), object)
}

// ICC-10: created, brought to its form, and deleted when nothing wants it.
func TestReconcile(t *testing.T) {
	ctx := context.Background()
	r, server := fixture(t)
	must.Succeed(t, expect.ErrorOf(r.Reconcile(ctx, request)))
	object, err := existing(server)
	must.Succeed(t, err)
	version := object.GetResourceVersion()
	must.Succeed(t, expect.ErrorOf(r.Reconcile(ctx, request)))
	if object, err = existing(server); err != nil || object.GetResourceVersion() != version {
		t.Errorf("ICC-10: before its event came it is written again: %v", err)
	}
	object.SetLabels(map[string]string{envoyfilter.LabelManagedBy: envoyfilter.ManagedBy, "more": "labels"})
	object.SetAnnotations(map[string]string{"foreign": "stays"})
	object.Object["spec"] = map[string]any{}
	must.Succeed(t, server.Update(ctx, object))
	must.Succeed(t, expect.ErrorOf(r.Reconcile(ctx, request)))
	if object, err = existing(server); err != nil {
		t.Fatal(err)
	}
	patches, _, _ := unstructured.NestedSlice(object.Object, "spec", "configPatches")
	expect.True(t, len(object.GetLabels()) == 1 && object.GetAnnotations()["foreign"] == "stays" && len(patches) == 1,
		"ICC-10: got %v", object)
	owner := object.GetOwnerReferences()
	r.index.SetFilter(&istio.EnvoyFilter{Object: partialmeta.Object{Namespace: "in", Name: object.GetName(), UID: "2", ResourceVersion: object.GetResourceVersion(), Labels: object.GetLabels(), OwnerReferences: owner}})
	r.index.Remove(envoyfilter.Rules, "a", "r")
	must.Succeed(t, expect.ErrorOf(r.Reconcile(ctx, request)))
	expect.Error(t, expect.ErrorOf(existing(server)), "ICC-10: without patches it is still there")
}

// ICC-10: an EnvoyFilter of that name that somebody else made stays as it is.
func TestForeign(t *testing.T) {
	foreign := envoyfilter.Empty("in", "a-cluster-configuration")
	foreign.Object["spec"] = map[string]any{"mine": "own"}
	r, server := fixture(t, foreign)
	expect.ErrorContains(t, expect.ErrorOf(r.Reconcile(context.Background(), request)), "is not changed")
	object, err := existing(server)
	expect.True(t, err == nil && object.Object["spec"].(map[string]any)["mine"] == "own", "got %v, %v", object, err)
}

// ICC-10: what somebody else writes between the reading and the writing of an EnvoyFilter stays: the write conflicts, and is made anew.
func TestConflict(t *testing.T) {
	ctx := context.Background()
	times := 0
	r, server := meddledFixture(t, func(c client.Client, object client.Object) {
		if times++; times > 1 {
			return
		}
		theirs := envoyfilter.Empty(object.GetNamespace(), object.GetName())
		must.Succeed(t, c.Get(ctx, client.ObjectKeyFromObject(theirs), theirs))
		theirs.SetAnnotations(map[string]string{"foreign": "stays"})
		must.Succeed(t, c.Update(ctx, theirs))
	})
	must.Succeed(t, expect.ErrorOf(r.Reconcile(ctx, request)))
	r.index.SetService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", Annotations: map[string]string{envoyfilter.AnnotationExportTo: "*"}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}, {Port: 443}}}})
	must.Succeed(t, expect.ErrorOf(r.Reconcile(ctx, request)))
	object, err := existing(server)
	must.Succeed(t, err)
	patches, _, _ := unstructured.NestedSlice(object.Object, "spec", "configPatches")
	expect.True(t, len(patches) == 2 && object.GetAnnotations()["foreign"] == "stays" && times == 2,
		"after %d updates: %v", times, object)
}

// ICC-10: what stands in the way in the namespace of one gateway keeps nothing from those of others.
func TestOneFailureStopsNoOther(t *testing.T) {
	foreign := envoyfilter.Empty("in", "a-cluster-configuration")
	r, server := fixture(t, foreign)
	r.index.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "in2", Labels: map[string]string{"gardener.cloud/role": "istio-ingress"}}})
	expect.ErrorContains(t, expect.ErrorOf(r.Reconcile(t.Context(), request)), "is not changed")
	other := envoyfilter.Empty("in2", "a-cluster-configuration")
	expect.Succeed(t, server.Get(t.Context(), client.ObjectKeyFromObject(other), other))
}
