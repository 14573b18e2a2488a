package controller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
)

// MRX-16: claims are deleted as long as the StatefulSet is there, also if somebody has deleted it already.
func TestClaimsOfTerminatingStatefulSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var deleted atomic.Bool
	meta := func(name string) map[string]any {
		return map[string]any{"name": name, "namespace": "n", "uid": name, "resourceVersion": "1", "labels": map[string]any{"app": "x"}}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/apis/apps/v1":
			answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": []any{
				map[string]any{"name": "statefulsets", "namespaced": true, "kind": "StatefulSet", "verbs": []string{"get"}}}})
		case strings.HasSuffix(path, "/statefulsets/s"):
			m := meta("s")
			m["deletionTimestamp"], m["finalizers"] = "2020-01-01T00:00:00Z", []any{"foregroundDeletion"}
			m["annotations"] = map[string]any{resourcesv1alpha1.AnnotationOrigin: "n/m"}
			answer(w, http.StatusOK, map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": m, "spec": map[string]any{
				"selector":             map[string]any{"matchLabels": map[string]any{"app": "x"}},
				"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}}})
		case strings.HasSuffix(path, "/persistentvolumeclaims"):
			answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "metadata": map[string]any{}, "items": []any{
				map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta("data-s-0")}}})
		case r.Method == http.MethodDelete && strings.HasSuffix(path, "/persistentvolumeclaims/data-s-0"):
			deleted.Store(true)
			answer(w, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
		default:
			answer(w, http.StatusNotFound, status(http.StatusNotFound, "x"))
		}
	}))
	t.Cleanup(server.Close)
	to, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), target.NewMetrics(prometheus.NewRegistry()))
	f.configure(func(o *Options) { o.Target = to })
	f.must(err)
	f.managed("m")
	mr := f.get("m")
	mr.Spec.DeletePersistentVolumeClaims = ptr.To(true)
	f.must(f.source.Update(f.ctx, mr))
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "n", Name: "s"}}}
	f.must(f.source.Status().Update(f.ctx, mr))
	f.must(f.source.Delete(f.ctx, f.get("m")))
	_, err = f.run("m")
	f.must(err)
	expect.True(t, deleted.Load(), "the claim of a terminating StatefulSet is left behind: %s", f.condition("m"))
}
