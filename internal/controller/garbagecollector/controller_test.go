package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	"github.com/espalier-project/espalier/internal/marked"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fixture is a target; onList, onDelete and onPatch run ahead of requests, and may refuse them. Objects are deleted several at once.
type fixture struct {
	mu sync.Mutex
	*Reconciler
	*testing.T
	target   client.Client
	clock    *clocktesting.FakePassiveClock
	onList   func(kind string, number int) error
	onDelete func(object client.Object) error
	onPatch  func(object client.Object) error
	lists    map[string]int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(now), lists: map[string]int{}}
	types := runtime.NewScheme()
	// A CRD of somebody else is known in its unstructured form only.
	foreign := []schema.GroupVersionKind{references.PrometheusKind.WithVersion("v1")}
	adds := []func(*runtime.Scheme) error{scheme.AddToScheme}
	if slices.ContainsFunc(objects, func(o client.Object) bool {
		_, is := o.(*unstructured.Unstructured)
		return is && o.GetObjectKind().GroupVersionKind() == managedResources
	}) {
		foreign = append(foreign, managedResources)
	} else {
		adds = append(adds, resourcesv1alpha1.AddToScheme)
	}
	for _, add := range adds {
		must.Succeed(t, add(types))
	}
	for _, kind := range foreign {
		types.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		types.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	f.target = crfake.NewClientBuilder().WithScheme(types).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind := strings.TrimSuffix(kindOf(list), "List")
			f.lists[kind]++
			if f.onList != nil {
				if err := f.onList(kind, f.lists[kind]); err != nil {
					return err
				}
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.onPatch != nil {
				if err := f.onPatch(object); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Patch(ctx, object, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(opts)
			if o.Preconditions == nil || o.Preconditions.UID == nil || o.Preconditions.ResourceVersion == nil {
				t.Errorf("%s: deleted without preconditions", object.GetName())
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.onDelete != nil {
				if err := f.onDelete(object); err != nil {
					return err
				}
			}
			current := object.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return err
			}
			if current.GetUID() != *o.Preconditions.UID || current.GetResourceVersion() != *o.Preconditions.ResourceVersion {
				return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errors.New("precondition"))
			}
			return c.Delete(ctx, object)
		},
	}).Build()
	period := time.Hour
	set := marked.New(marked.Options{Target: f.target, Period: period, Clock: f.clock, Metrics: marked.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
	f.Reconciler = New(Options{
		Marked: set,
		Config: config.GarbageCollectorControllerConfig{SyncPeriod: &metav1.Duration{Duration: period}, MinimumAge: &metav1.Duration{Duration: 10 * time.Minute}},
		Target: f.target, Clock: f.clock, Metrics: NewMetrics(prometheus.NewRegistry()),
	})
	return f
}

func kindOf(list client.ObjectList) string {
	if kind := list.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	name := fmt.Sprintf("%T", list)
	return name[strings.LastIndex(name, ".")+1:]
}

// garbage is a marked object of an age.
func garbage(kind references.Kind, namespace, name string, age time.Duration, change ...func(*metav1.ObjectMeta)) client.Object {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u", CreationTimestamp: metav1.NewTime(now.Add(-age)), Labels: map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}}
	for _, c := range change {
		c(&m)
	}
	if kind == references.Secret {
		return &corev1.Secret{ObjectMeta: m}
	}
	return &corev1.ConfigMap{ObjectMeta: m}
}

func (f *fixture) run() {
	f.Helper()
	result, err := f.Reconcile(f.Context(), reconcile.Request{})
	expect.True(f, err == nil && result.RequeueAfter == f.Config.SyncPeriod.Duration, "GC-1: got %+v, %v", result, err)
}

// mark lets a run mark what nothing refers to; the next one is a period later (GC-17, GC-18).
func (f *fixture) mark() {
	f.Helper()
	onList := f.onList
	f.onList = nil
	f.run()
	f.clock.SetTime(f.clock.Now().Add(f.Config.SyncPeriod.Duration))
	f.onList, f.lists = onList, map[string]int{}
}

// collect lets a run mark, and the next one delete.
func (f *fixture) collect() {
	f.Helper()
	f.mark()
	f.run()
}

// every sets the period of runs.
func (f *fixture) every(period time.Duration) {
	f.Config.SyncPeriod = &metav1.Duration{Duration: period}
}

// left returns what is left, sorted.
func (f *fixture) left() []string {
	f.Helper()
	var names []string
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	f.lists = map[string]int{}
	onList := f.onList
	f.onList = nil
	defer func() { f.onList = onList }()
	must.Succeed(f, errors.Join(f.target.List(f.Context(), secrets), f.target.List(f.Context(), configMaps)))
	for _, s := range secrets.Items {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	for _, c := range configMaps.Items {
		names = append(names, c.Namespace+"/"+c.Name)
	}
	slices.Sort(names)
	return names
}

func (f *fixture) leaves(what string, want ...string) {
	f.Helper()
	if got := f.left(); !slices.Equal(got, want) {
		f.Errorf("%s: left are %v, want %v", what, got, want)
	}
}

// BH-GC-1, BH-GC-11: which objects are collected when nothing refers to anything.
func TestCandidates(t *testing.T) {
	f := newFixture(t)
	f.run()
	unmarked := func(m *metav1.ObjectMeta) { m.Labels = nil }
	label := func(value string) func(m *metav1.ObjectMeta) {
		return func(m *metav1.ObjectMeta) {
			m.Labels["resources.gardener.cloud/garbage-collectable-reference"] = value
		}
	}
	f = newFixture(t,
		garbage(references.Secret, "a", "old", time.Hour), garbage(references.ConfigMap, "b", "old", time.Hour), garbage(references.ConfigMap, "b", "exactly", 10*time.Minute),
		garbage(references.Secret, "a", "young", 5*time.Minute), garbage(references.Secret, "a", "unmarked", time.Hour, unmarked), garbage(references.ConfigMap, "a", "unmarked-too", time.Hour, unmarked),
		garbage(references.ConfigMap, "a", "true", time.Hour, label("True")), garbage(references.Secret, "a", "one", time.Hour, label("1")),
		garbage(references.ConfigMap, "a", "false", time.Hour, label("false")), garbage(references.ConfigMap, "a", "yes", time.Hour, label("yes")))
	f.every(time.Minute)
	f.collect()
	f.leaves("BH-GC-2/GC-15", "a/false", "a/unmarked", "a/unmarked-too", "a/yes", "a/young")
	f.clock.SetTime(now.Add(5 * time.Minute))
	f.collect()
	f.leaves("GC-5/BH-GC-6, ten minutes later", "a/false", "a/unmarked", "a/unmarked-too", "a/yes")

	f = newFixture(t, garbage(references.Secret, "a", "young", time.Second))
	f.Config.MinimumAge = &metav1.Duration{}
	f.collect()
	f.leaves("R11, no minimum age")
	f = newFixture(t, garbage(references.Secret, "a", "x", time.Hour), garbage(references.Secret, "b", "x", time.Hour))
	f.Namespaces = []string{"b", "c"}
	f.collect()
	f.leaves("COM-3, only these namespaces", "a/x")
}

func annotated(kind references.Kind, name string) map[string]string {
	return map[string]string{references.Reference{Kind: kind, Name: name}.AnnotationKey(): name}
}

// ruleOf names the rule about a kind of holder.
func ruleOf(holder client.Object) string {
	switch holder.(type) {
	case *appsv1.Deployment:
		return "BH-GC-3/BH-GC-8" // It has no replicas.
	case *resourcesv1alpha1.ManagedResource:
		return "BH-GC-4"
	case *unstructured.Unstructured:
		return "SW-13"
	}
	return "BH-GC-3"
}

// TestHolders: each kind of holder keeps what it refers to by annotation, with and without a check of specs.
func TestHolders(t *testing.T) {
	m := metav1.ObjectMeta{Namespace: "default", Name: "h", Annotations: annotated(references.ConfigMap, "kept")}
	withPrometheus := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus"}}
	withPrometheus.SetNamespace("default")
	withPrometheus.SetName("h")
	withPrometheus.SetAnnotations(m.Annotations)
	all := []client.Object{
		&appsv1.Deployment{ObjectMeta: m, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(0))}}, &appsv1.StatefulSet{ObjectMeta: m}, &appsv1.DaemonSet{ObjectMeta: m},
		&batchv1.Job{ObjectMeta: m}, &batchv1.CronJob{ObjectMeta: m}, &corev1.Pod{ObjectMeta: m}, &resourcesv1alpha1.ManagedResource{ObjectMeta: m}, withPrometheus,
	}
	for _, h := range all {
		for _, specs := range []bool{true, false} {
			f := newFixture(t, h.DeepCopyObject().(client.Object), garbage(references.ConfigMap, "default", "kept", time.Hour), garbage(references.ConfigMap, "default", "other", time.Hour),
				garbage(references.ConfigMap, "kube-system", "kept", time.Hour), garbage(references.Secret, "default", "kept", time.Hour))
			f.Config.ScanPodSpecs = ptr.To(specs)
			f.collect()
			f.leaves(fmt.Sprintf("%s: %T, specs %v", ruleOf(h), h, specs), "default/kept")
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Annotations: map[string]string{"reference.resources.gardener.cloud/configmap-82a3537f": "test-5678"}}}
	f := newFixture(t, pod, garbage(references.ConfigMap, "default", "test-1234", time.Hour), garbage(references.ConfigMap, "default", "test-5678", time.Hour))
	f.collect()
	f.leaves("BH-GC-9: the document's example", "default/test-5678")
	expect.Equal(t, len(slices.DeleteFunc(slices.Clone(holders), func(k holderKind) bool { return k.specsOnly })), len(all),
		"there are %d kinds of holders", len(holders))
}

// T3-8: what Pods need, and what is annotated in templates, counts unless it is switched off (GC-7, GC-11, BH-GC-5).
func TestSpecs(t *testing.T) {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotated(references.ConfigMap, "template")}, Spec: corev1.PodSpec{
		InitContainers:      []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "init"}}}}}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ephemeral"}}}}}}},
	}}
	objects := func() []client.Object {
		return []client.Object{
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "h"}, Spec: appsv1.ReplicaSetSpec{Template: template}},
			&resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "h"}, Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: "mr"}}}},
			garbage(references.Secret, "a", "init", time.Hour), garbage(references.ConfigMap, "a", "ephemeral", time.Hour), garbage(references.ConfigMap, "a", "template", time.Hour),
			garbage(references.Secret, "a", "mr", time.Hour), garbage(references.Secret, "a", "unused", time.Hour),
		}
	}
	f := newFixture(t, objects()...)
	f.collect()
	f.leaves("by default", "a/ephemeral", "a/init", "a/mr", "a/template")
	f = newFixture(t, objects()...)
	f.Config.ScanPodSpecs = ptr.To(false)
	f.collect()
	f.leaves("GC-11/annotations only")
}

// GC-4, GC-6: whatever cannot be listed, also the second time, nothing is deleted; a kind that need not be there may be absent.
func TestIncompleteView(t *testing.T) {
	kinds := []string{"Secret", "ConfigMap"}
	for _, h := range holders {
		kinds = append(kinds, h.gvk.Kind)
	}
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	for _, kind := range kinds {
		for number := 1; number <= 2; number++ {
			for name, failure := range map[string]error{"500": errors.New("internal"), "404": notFound, "no match": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: kind}}} {
				if number == 2 && slices.Contains(kinds[:2], kind) {
					continue // They are listed once.
				}
				f := newFixture(t, garbage(references.Secret, "a", "x", time.Hour))
				f.mark()
				f.onList = func(k string, n int) error {
					if k == kind && n == number {
						return failure
					}
					return nil
				}
				_, err := f.Reconcile(t.Context(), reconcile.Request{})
				f.onList = nil
				optional := name != "500" && slices.ContainsFunc(holders, func(h holderKind) bool { return h.gvk.Kind == kind && h.optional })
				if (err == nil) != optional || (len(f.left()) == 0) != optional {
					t.Errorf("GC-6/GC-12: %s, list %d, %s: error %v, left are %v", kind, number, name, err, f.left())
				}
				if err != nil && !strings.HasPrefix(err.Error(), "failed listing ") {
					t.Errorf("GC-4, GC-6: got %v", err)
				}
			}
		}
	}
}

// A workload that is switched back to an older object after the first look keeps it.
func TestLateReference(t *testing.T) {
	f := newFixture(t, garbage(references.ConfigMap, "a", "old", time.Hour), garbage(references.ConfigMap, "a", "unused", time.Hour))
	f.onList = func(kind string, number int) error {
		if kind == "CronJob" && number == 1 { // After Deployments were listed.
			return f.target.Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "d", Annotations: annotated(references.ConfigMap, "old")}})
		}
		return nil
	}
	f.collect()
	f.leaves("1.6/live re-check", "a/old")
}

// An object that has changed, or was made anew, since it was listed is left for the next run.
func TestPreconditions(t *testing.T) {
	f := newFixture(t, garbage(references.ConfigMap, "a", "changed", time.Hour), garbage(references.ConfigMap, "a", "unused", time.Hour))
	f.onDelete = func(object client.Object) error {
		if object.GetName() != "changed" {
			return nil
		}
		f.onDelete = nil
		current := &corev1.ConfigMap{}
		if err := f.target.Get(t.Context(), client.ObjectKeyFromObject(object), current); err != nil {
			return err
		}
		current.Labels = nil // Its owner keeps it.
		return f.target.Update(t.Context(), current)
	}
	f.collect()
	f.leaves("1.6/preconditions", "a/changed")
	f.run()
	f.leaves("it is no candidate any more", "a/changed")
}

// TestDeletions: one that fails stops no other, and is tried again; what is gone is fine.
func TestDeletions(t *testing.T) {
	var objects []client.Object
	for i := range 30 {
		objects = append(objects, garbage(references.Secret, "a", fmt.Sprintf("s%02d", i), time.Hour))
	}
	f := newFixture(t, objects...)
	f.mark()
	failing := map[string]error{"s07": errors.New("no"), "s11": apierrors.NewNotFound(schema.GroupResource{}, "s11")}
	f.onDelete = func(object client.Object) error { return failing[object.GetName()] }
	if _, err := f.Reconcile(t.Context(), reconcile.Request{}); err == nil || err.Error() != "Could not delete all unused resources: 1 error occurred: Secret a/s07: no" {
		t.Errorf("got %v", err)
	}
	f.leaves("GC-9/GC-10", "a/s07", "a/s11")
	f.onDelete = nil
	f.run()
	f.leaves("GC-2")
	if err := aggregate([]error{errors.New("a"), errors.New("b")}); err.Error() != "Could not delete all unused resources: 2 errors occurred: [a, b]" {
		t.Errorf("GC-10: got %v", err)
	}
}

// Nothing is listed for what is not there to be collected.
func TestNoCandidates(t *testing.T) {
	f := newFixture(t, garbage(references.Secret, "a", "young", time.Minute))
	f.run()
	expect.Equal(t, len(f.lists), 2, "listed %v", f.lists)
}

// TestPropertyCollector: whatever there is and whatever happens during a run, nothing is deleted that is young, unmarked, changed since, or referred to
// before the second look began; and all the rest is.
func TestPropertyCollector(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"a", "b", "c"}
		var objects []client.Object
		want := map[string]bool{}
		for _, name := range names {
			age := time.Duration(rapid.IntRange(0, 20).Draw(rt, "age")) * time.Minute
			marked := rapid.Bool().Draw(rt, "marked")
			object := garbage(references.ConfigMap, "ns", name, age)
			if !marked {
				object.SetLabels(nil)
			}
			objects = append(objects, object)
			want[name] = marked && age >= 10*time.Minute
		}
		draw := func(n string) *appsv1.Deployment {
			refers := rapid.SampledFrom(names).Draw(rt, "refers to")
			want[refers] = false
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: n, Annotations: annotated(references.ConfigMap, refers)}}
		}
		if rapid.Bool().Draw(rt, "holder before") {
			objects = append(objects, draw("before"))
		}
		f := newFixture(t, objects...)
		f.every(time.Second)
		f.mark()
		if rapid.Bool().Draw(rt, "holder meanwhile") {
			late, kind := draw("late"), rapid.SampledFrom([]string{"Secret", "ConfigMap", "Deployment", "Pod", "Prometheus"}).Draw(rt, "when")
			f.onList = func(k string, n int) error {
				if k == kind && n == 1 {
					return f.target.Create(t.Context(), late)
				}
				return nil
			}
		}
		must.Succeed(rt, expect.ErrorOf(f.Reconcile(t.Context(), reconcile.Request{})))
		f.onList = nil
		// An object that is created during the first look may be listed too late to begin the second one, if there is nothing left to check.
		left := f.left()
		for _, name := range names {
			is := slices.Contains(left, "ns/"+name)
			expect.True(rt, is != want[name], "%s is left: %v, want it deleted: %v", name, is, want[name])
		}
	})
}

// REF-1: a ServiceAccount gives each of its Pods what images are pulled with. It holds that while there is no such Pod, but in the mode in which
// only annotations count.
func TestServiceAccountsHold(t *testing.T) {
	account := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "a", Name: "h"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}, Secrets: []corev1.ObjectReference{{Name: "mounted"}},
	}
	secret := func(namespace, name string) client.Object {
		return garbage(references.Secret, namespace, name, time.Hour)
	}
	for scan, want := range map[bool]string{true: "a/mounted a/pull", false: ""} {
		f := newFixture(t, account.DeepCopy(), secret("a", "pull"), secret("a", "mounted"), secret("a", "unused"), secret("b", "pull"), garbage(references.ConfigMap, "a", "pull", time.Hour))
		f.Config.ScanPodSpecs = ptr.To(scan)
		f.collect()
		secrets, configs := &corev1.SecretList{}, &corev1.ConfigMapList{}
		must.Succeed(t, errors.Join(f.target.List(t.Context(), secrets), f.target.List(t.Context(), configs)))
		var left []string
		for i := range secrets.Items {
			left = append(left, secrets.Items[i].Namespace+"/"+secrets.Items[i].Name)
		}
		slices.Sort(left)
		if got := strings.Join(left, " "); got != want || len(configs.Items) > 0 {
			t.Errorf("scanning %t: left are %s, and %d ConfigMaps", scan, got, len(configs.Items))
		}
	}
}
