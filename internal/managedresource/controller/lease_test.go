package controller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
)

// statefulTarget serves a StatefulSet s with its claim data-s-0, and a Widget w, which is deleted before it.
type statefulTarget struct {
	// onDelete is called for the deletion of the Widget before it is answered, onCreate before the StatefulSet is said to be there.
	onDelete, onCreate func()
	// refusesClaims is true if the deletion of claims is forbidden.
	refusesClaims bool

	mu          sync.Mutex
	statefulSet map[string]any
	log         []string
}

const statefulSetManifest = `---
apiVersion: apps/v1
kind: StatefulSet
metadata: {namespace: 'n', name: 's', labels: {app: x}}
spec: {replicas: 1, serviceName: s, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: []}}, volumeClaimTemplates: [{metadata: {name: data}}]}
`

func originMetadata(name, origin string) map[string]any {
	return map[string]any{"name": name, "namespace": "n", "uid": name, "resourceVersion": "1", "labels": map[string]any{"app": "x"},
		"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: origin}}
}

func (s *statefulTarget) note(request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, request)
}

func (s *statefulTarget) has(request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.log, request)
}

func (s *statefulTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kinds := func(gv, name, kind string) {
		answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": []any{
			map[string]any{"name": name, "namespaced": true, "kind": kind, "verbs": []string{"get"}}}})
	}
	success := map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}
	switch path := r.URL.Path; {
	case path == "/apis/apps/v1":
		kinds("apps/v1", "statefulsets", "StatefulSet")
	case path == "/apis/example.com/v1":
		kinds("example.com/v1", "widgets", "Widget")
	case strings.HasSuffix(path, "/widgets/w") && r.Method == http.MethodDelete:
		s.note("DELETE widget")
		if s.onDelete != nil {
			s.onDelete()
		}
		answer(w, http.StatusOK, success)
	case strings.HasSuffix(path, "/widgets/w") && !s.has("DELETE widget"):
		answer(w, http.StatusOK, map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": originMetadata("w", "n/one")})
	case strings.HasSuffix(path, "/statefulsets"):
		s.onCreate()
		answer(w, http.StatusConflict, status(http.StatusConflict, "s"))
	case strings.HasSuffix(path, "/statefulsets/s"):
		s.serveStatefulSet(w, r)
	case strings.HasSuffix(path, "/persistentvolumeclaims"):
		answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "metadata": map[string]any{}, "items": []any{
			map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": originMetadata("data-s-0", "")}}})
	case strings.HasSuffix(path, "/persistentvolumeclaims/data-s-0") && s.refusesClaims:
		answer(w, http.StatusForbidden, status(http.StatusForbidden, "data-s-0"))
	case strings.HasSuffix(path, "/persistentvolumeclaims/data-s-0"):
		s.note("DELETE claim")
		answer(w, http.StatusOK, success)
	default:
		answer(w, http.StatusNotFound, status(http.StatusNotFound, "x"))
	}
}

func (s *statefulTarget) serveStatefulSet(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		var options metav1.DeleteOptions
		if err := json.NewDecoder(r.Body).Decode(&options); err != nil || options.PropagationPolicy == nil {
			answer(w, http.StatusBadRequest, status(http.StatusBadRequest, "s"))
			return
		}
		s.note("DELETE statefulset")
		s.note(string(*options.PropagationPolicy))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, s.statefulSet)
}

// newStateful returns a fixture in which one has the Widget and the StatefulSet, and claims are to be deleted.
func newStateful(t *testing.T) (*fixture, *statefulTarget) {
	f := newFixture(t)
	s := &statefulTarget{statefulSet: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": originMetadata("s", "n/one"), "spec": map[string]any{
		"selector":             map[string]any{"matchLabels": map[string]any{"app": "x"}},
		"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}}}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	to, err := target.NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client(), target.NewMetrics(prometheus.NewRegistry()))
	f.configure(func(o *Options) { o.Target = to })
	f.must(err)
	f.managed("one")
	mr := f.get("one")
	mr.Spec.DeletePersistentVolumeClaims = ptr.To(true)
	f.must(f.source.Update(f.ctx, mr))
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{
		{ObjectReference: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: "n", Name: "s"}},
		{ObjectReference: corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "n", Name: "w"}}}
	f.must(f.source.Status().Update(f.ctx, mr))
	return f, s
}

// annotate sets an annotation of a ManagedResource, and lets nobody know.
func (f *fixture) annotate(name, annotation, value string) {
	f.Helper()
	mr := f.get(name)
	mr.Annotations = map[string]string{annotation: value}
	f.must(f.source.Update(f.ctx, mr))
}

// MRX-16, promise about deletions: the claims of a StatefulSet are not deleted any more once nobody asks for that.
func TestClaimsAreStillAskedFor(t *testing.T) {
	t.Parallel()
	for how, change := range map[string]func(*fixture){
		"the Secret has it again": func(f *fixture) { f.manifests("one", "2", statefulSetManifest) },
		"the class is taken back": func(f *fixture) { f.edit("one", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = nil }) },
		"claims are to be kept": func(f *fixture) {
			f.edit("one", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.DeletePersistentVolumeClaims = nil })
		},
		"it is to be ignored": func(f *fixture) { f.annotate("one", resourcesv1alpha1.AnnotationIgnore, "true") },
		"it is to wait for a state": func(f *fixture) {
			f.annotate("one", resourcesv1alpha1.AnnotationOperation, resourcesv1alpha1.OperationWaitForState)
		},
	} {
		t.Run(how, func(t *testing.T) {
			f, s := newStateful(t)
			if how == "the class is taken back" {
				f.edit("one", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
			}
			s.onDelete = func() { change(f) } // The deletion of what comes first is still to be answered.
			_, err := f.run("one")
			f.must(err)
			expect.True(t, s.has("DELETE widget") && !s.has("DELETE statefulset") && !s.has("DELETE claim"),
				"the StatefulSet stays, and so must its volumes: %s", s.log)
		})
	}
}

// MRX-7, MRX-8: a StatefulSet is deleted in the foreground, after its claims, and not before their deletion was accepted.
func TestDeletionOfAStatefulSet(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		f, s := newStateful(t)
		s.refusesClaims = refused
		_, err := f.run("one")
		f.must(err)
		want := "[DELETE widget DELETE claim DELETE statefulset Foreground]"
		if refused {
			want = "[DELETE widget]"
		}
		got := fmt.Sprint(s.log)
		expect.Equal(t, got, want, "MRX-7/MRX-8: got %s, want %s; %s", got, want, f.condition("one"))
		expect.Equal(t, s.log[0], "DELETE widget", "MRX-17: a kind that is applied last is deleted first: %s", s.log)
	}
}

// TestClaimsStayByDefault: the claims of a StatefulSet are deleted only where the ManagedResource says so.
func TestClaimsStayByDefault(t *testing.T) {
	t.Parallel()
	f, s := newStateful(t)
	f.edit("one", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.DeletePersistentVolumeClaims = nil })
	_, err := f.run("one")
	f.must(err)
	expect.Equal(t, fmt.Sprint(s.log), "[DELETE widget DELETE statefulset Foreground]", "MRX-16")
}

// MRX-16, MRB-16: a StatefulSet that moves to another ManagedResource keeps its claims.
func TestClaimsOfAStatefulSetThatMoves(t *testing.T) {
	t.Parallel()
	f, s := newStateful(t)
	f.managed("two")
	f.manifests("two", "2", statefulSetManifest)
	release, done := make(chan struct{}), make(chan struct{})
	s.onDelete = func() {
		go func() { defer close(done); _, _ = f.run("two") }()
		poll(t, "two is about to get it", func() bool { return f.inventory("two") != "" })
	}
	s.onCreate = func() { <-release }
	_, err := f.run("one")
	f.must(err)
	close(release)
	<-done
	expect.True(t, !s.has("DELETE statefulset") && !s.has("DELETE claim"),
		"the StatefulSet moved to two, with its volumes: %s; two has %s", s.log, f.inventory("two"))
}

// MR-33, promise about deletions: what nobody asks for any more is not deleted to be created anew. Nobody would create it if the ManagedResource
// is ignored, or leaves its objects.
func TestReplacingIsStillAskedFor(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"ignored", "deleted with keepObjects", "the Secret is taken back"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m")
			f.manifests("m", "1b", configMap("a", "1", "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"))
			f.complete("m")
			uid := f.uid("a")
			f.manifests("m", "2", configMap("a", "2", "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"))
			var once sync.Once
			f.target.hook(func(method, name string) int {
				if method != http.MethodPut || name != "a" {
					return 0
				}
				once.Do(func() {
					switch how {
					case "ignored":
						f.annotate("m", resourcesv1alpha1.AnnotationIgnore, "true")
					case "deleted with keepObjects":
						f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
						f.must(f.source.Delete(f.ctx, f.get("m")))
					case "the Secret is taken back":
						f.manifests("m", "3", configMap("a", "1", "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"))
					}
				})
				return http.StatusUnprocessableEntity
			})
			f.runs("m", 5)
			_, there := f.target.value("a")
			expect.True(t, there && f.uid("a") == uid, "it was deleted though before that %s; it is there: %t", how, there)
		})
	}
}

// MRA-4, promise about emergencies: a run that writes ends soon after its ManagedResource is to be ignored, or to wait.
func TestWritesAreStillAskedFor(t *testing.T) {
	t.Parallel()
	for annotation, value := range map[string]string{
		resourcesv1alpha1.AnnotationIgnore: "true", resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationWaitForState,
	} {
		t.Run(annotation, func(t *testing.T) {
			const all = 200
			f := newFixture(t)
			manifests := func(value int) (objects []string) {
				for i := range all {
					objects = append(objects, fmt.Sprintf("o%d=%d", i, value))
				}
				return objects
			}
			f.apply("m", manifests(1)...)
			f.secret("m", "2", manifests(2)...)
			var annotated sync.Once
			f.target.hook(func(method, _ string) int {
				if method == http.MethodPut {
					annotated.Do(func() { f.annotate("m", annotation, value) })
				}
				return 0
			})
			before := f.target.count(http.MethodPut)
			_, _ = f.run("m")
			written := f.target.count(http.MethodPut) - before
			expect.True(t, written != 0 && written <= 2*steps.PerRun, "%d of %d objects were written", written, all)
			_, _ = f.run("m")
			f.target.hook(nil)
			f.annotate("m", "unrelated", "")
			f.complete("m")
			expect.Equal(t, expect.First(f.target.value("o199")), "2", "it is applied no more")
		})
	}
}

// MRX-9, promise about deletions: finalizers of others are not removed any more once nobody asks for the deletion.
func TestFinalizersAreStillAskedFor(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1", "z=1")
	f.target.change("a", func(o *unstructured.Unstructured) {
		setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, "1h")(o)
		o.SetFinalizers([]string{"somebody/else"})
		_ = unstructured.SetNestedField(o.Object, "2020-01-01T00:00:00Z", "metadata", "deletionTimestamp")
	})
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
	taken := make(chan struct{})
	var once, onceGet sync.Once
	f.target.hook(func(method, name string) int {
		switch {
		case method == http.MethodDelete && name == "z":
			once.Do(func() {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = nil })
				close(taken)
			})
		case method == http.MethodGet && name == "a":
			onceGet.Do(func() { <-taken })
		}
		return 0
	})
	_, _ = f.run("m")
	expect.True(t, len(f.live("a").GetFinalizers()) != 0,
		"its finalizers were removed though the class was taken back before it was looked at")
}

// MRT-7: deletions that are under way end with wait-for-state.
func TestDeletionsWaitForAState(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1", "z=1")
	f.must(f.source.Delete(f.ctx, f.get("m")))
	set := make(chan struct{})
	var once, onceGet sync.Once
	f.target.hook(func(method, name string) int {
		switch {
		case method == http.MethodDelete && name == "z":
			once.Do(func() {
				f.annotate("m", resourcesv1alpha1.AnnotationOperation, resourcesv1alpha1.OperationWaitForState)
				close(set)
			})
		case method == http.MethodGet && name == "a":
			onceGet.Do(func() { <-set })
		}
		return 0
	})
	_, _ = f.run("m")
	expect.True(t, expect.OK(f.target.value("a")), "it was deleted after the ManagedResource was told to wait")
}

// MRX-14: requests for a kind that take too long are not tried on, in deletions as in writes: they would hold a place that others need.
func TestDeletionsOfASlowKind(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{false, true} {
		t.Run(map[bool]string{false: "deleted", true: "released"}[released], func(t *testing.T) {
			f := newFixture(t)
			var before, after []string
			for i := range 200 {
				name := fmt.Sprint("o", i)
				before = append(before, configMap(name, "1", ""))
				if released {
					after = append(after, configMap(name, "1", "annotations: {resources.gardener.cloud/mode: Ignore}"))
				}
			}
			f.managed("m")
			f.manifests("m", "1b", before...)
			f.complete("m")
			f.manifests("m", "2", after...)
			f.target.hook(func(string, string) int { return http.StatusGatewayTimeout })
			tried := f.target.count(http.MethodGet)
			_, _ = f.run("m")
			if tried = f.target.count(http.MethodGet) - tried; tried < steps.TooManyTimeouts || tried > 2*steps.PerRun {
				t.Errorf("%d objects were tried", tried)
			}
			f.target.hook(nil)
			f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
			f.complete("m")
			expect.Equal(t, f.inventory("m"), "", "the inventory still")
		})
	}
}
