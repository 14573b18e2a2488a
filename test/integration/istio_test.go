package integration

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// ICC-1 … ICC-10: the EnvoyFilters for the rules of a namespace, whose definitions come after the start, go, and come again.
func TestIstioClusterConfiguration(t *testing.T) {
	f := newFixture(t)
	gate := f.ns + "-in"
	f.must(f.shoot.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gate, Labels: map[string]string{"gardener.cloud/role": "istio-ingress"}}}))
	f.must(f.shoot.Create(f.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "web", Annotations: map[string]string{"networking.istio.io/exportTo": "*"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Name: "https-main", Port: 443}, {Name: "grpc-main", Port: 80}}},
	}))
	process := f.controllers(map[string]any{"istioClusterConfiguration": map[string]any{"enabled": true}})
	define := func() []client.Object {
		var all []client.Object
		for _, crd := range []*unstructured.Unstructured{istioCRD("destinationrules", "DestinationRule", "v1beta1"), istioCRD("envoyfilters", "EnvoyFilter", "v1alpha3")} {
			f.eventually(func() error { return f.shoot.Create(f.ctx, crd) }) // The last one may still be going.
			all = append(all, crd)
		}
		return all
	}
	definitions := define()
	t.Cleanup(func() {
		for _, crd := range definitions {
			_ = f.shoot.Delete(context.Background(), crd)
		}
	})
	name := f.ns + "-cluster-configuration"
	filter := func() (*unstructured.Unstructured, error) {
		o := harness.Object("networking.istio.io/v1alpha3", "EnvoyFilter", gate, name)
		return o, f.shoot.Get(f.ctx, client.ObjectKeyFromObject(o), o)
	}
	clusters := func(want ...string) {
		t.Helper()
		f.eventually(func() error {
			o, err := filter()
			if err != nil {
				return err
			}
			var got []string
			patches, _, _ := unstructured.NestedSlice(o.Object, "spec", "configPatches")
			for _, p := range patches {
				cluster, _, _ := unstructured.NestedString(p.(map[string]any), "match", "cluster", "name")
				got = append(got, cluster)
			}
			return expect.Holds(slices.Equal(got, want), "the filter has patches for %q", got)
		})
	}
	both := []string{"outbound|443||web." + f.ns + ".svc.cluster.local", "outbound|80||web." + f.ns + ".svc.cluster.local"}
	rule := func() *unstructured.Unstructured {
		return f.create("apiVersion: networking.istio.io/v1beta1\nkind: DestinationRule\nmetadata: {namespace: %s, name: r}\nspec: {host: web, exportTo: ['*']}", f.ns)
	}
	r := rule()
	clusters(both...)
	o, err := filter()
	f.must(err)
	if owner := metav1.GetControllerOf(o); owner == nil || owner.Kind != "Namespace" || owner.Name != f.ns || len(o.GetLabels()) != 1 {
		t.Errorf("ICC-10: got %v, %v", owner, o.GetLabels())
	}

	// A restart writes nothing, and what happened meanwhile is put right.
	process.Stop()
	again := f.controllers(map[string]any{"istioClusterConfiguration": map[string]any{"enabled": true}})
	looked := regexp.MustCompile(`controller_runtime_reconcile_total\{controller="istio-cluster-configuration",result="success"\} [1-9]`)
	f.eventually(func() error {
		if _, metrics := again.Get(again.Metrics, "/metrics"); !looked.MatchString(metrics) {
			return errors.New("not looked at yet")
		}
		return nil
	})
	unchanged, err := filter()
	f.must(err)
	expect.Equal(t, unchanged.GetResourceVersion(), o.GetResourceVersion(), "ICC-10: a restart has written the filter")
	again.Stop()
	f.must(f.shoot.Delete(f.ctx, unchanged))
	f.controllers(map[string]any{"istioClusterConfiguration": map[string]any{"enabled": true}})
	clusters(both...)
	o, err = filter()
	f.must(err)

	// Changes by others are undone.
	f.must(f.shoot.Patch(f.ctx, o, harness.MergePatch(map[string]any{"spec": map[string]any{"configPatches": []any{}}})))
	clusters(both...)
	f.must(f.shoot.Delete(f.ctx, o))
	clusters(both...)

	// ICC-3: ports, and namespaces of gateways.
	f.must(f.shoot.Patch(f.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "web"}}, harness.MergePatch(map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 443, "protocol": "TCP"}}}})))
	clusters(both[0])
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gate}}
	gone := func(what string) {
		t.Helper()
		f.eventually(func() error {
			if _, err := filter(); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%s: it is still there (%v)", what, err)
			}
			return nil
		})
	}
	f.must(f.shoot.Patch(f.ctx, space, harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"gardener.cloud/role": nil}}})))
	gone("ICC-3/no namespace of gateways any more")
	f.must(f.shoot.Patch(f.ctx, space, harness.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"handler.exposureclass.gardener.cloud/name": "x"}}})))
	clusters(both[0])

	// ICC-10: nobody wants it any more.
	f.must(f.shoot.Delete(f.ctx, r))
	gone("ICC-10/last DestinationRule")

	// ICC-1: the definitions go, and come again.
	rule()
	clusters(both[0])
	for _, crd := range definitions {
		f.must(f.shoot.Delete(f.ctx, crd))
	}
	definitions = define()
	rule()
	clusters(both[0])
}
