package marked

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const period = time.Hour

// world is a target that counts requests, and refuses them with an error.
type world struct {
	*Set
	target         client.Client
	clock          *clocktesting.FakePassiveClock
	lists, patches int
	refuse         error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))}
	w.target = crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if w.lists++; w.refuse != nil {
				return w.refuse
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if w.patches++; w.refuse != nil {
				return w.refuse
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	}).Build()
	w.Set = New(Options{Target: w.target, Period: period, Clock: w.clock, Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard()})
	return w
}

// doomed is a marked object.
func doomed(kind references.Kind, namespace, name string) client.Object {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	m.Labels, m.Annotations = internalreferences.Mark(internalreferences.Content(&m), time.Unix(0, 0))
	if kind == references.Secret {
		return &corev1.Secret{ObjectMeta: m}
	}
	return &corev1.ConfigMap{ObjectMeta: m}
}

func (w *world) marked(t *testing.T, object client.Object) bool {
	t.Helper()
	must.Succeed(t, w.target.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	return internalreferences.Marked(&metav1.ObjectMeta{Labels: object.GetLabels(), Annotations: object.GetAnnotations()})
}

func one(kind references.Kind, name string) func() []references.Reference {
	return func() []references.Reference {
		return []references.Reference{{Kind: kind, Name: name}, {Kind: kind, Name: name}}
	}
}

// GC-20: what references cost while nothing is marked, and while something is.
func TestCost(t *testing.T) {
	type requests struct{ lists, patches int }
	for name, tc := range map[string]struct {
		do   func(context.Context, *world)
		want requests
	}{
		"GC-20/nothing where the collector runs and nothing is marked for deletion": {func(ctx context.Context, w *world) {
			w.Replace(nil)
			for range 100 {
				w.Refers(ctx, ByEngine, "a", one(references.ConfigMap, "c"))
				w.clock.SetTime(w.clock.Now().Add(time.Hour))
			}
		}, requests{}},
		"GC-20/nothing where what is marked is elsewhere": {func(ctx context.Context, w *world) {
			w.Replace([]Key{{references.ConfigMap, "b", "c"}, {references.ConfigMap, "a", "other"}, {references.Secret, "a", "c"}})
			w.Refers(ctx, ByEngine, "a", one(references.ConfigMap, "c"))
		}, requests{}},
		"GC-20/two lists in a quarter of a period where it does not": {func(ctx context.Context, w *world) {
			for range 15 {
				w.Refers(ctx, ByWebhook, "a", one(references.ConfigMap, "free"))
				w.clock.SetTime(w.clock.Now().Add(time.Minute))
			}
		}, requests{lists: 2}},
		"GC-20/two more after that": {func(ctx context.Context, w *world) {
			for range 16 {
				w.Refers(ctx, ByWebhook, "a", one(references.ConfigMap, "free"))
				w.clock.SetTime(w.clock.Now().Add(time.Minute))
			}
		}, requests{lists: 4}},
		"GC-20/one attempt in ten seconds where lists fail": {func(ctx context.Context, w *world) {
			w.refuse = errors.New("no")
			for range 10 {
				w.Refers(ctx, ByWebhook, "a", one(references.ConfigMap, "c"))
				w.clock.SetTime(w.clock.Now().Add(time.Second))
			}
		}, requests{lists: 1}},
		"GC-20/one write for an object, once": {func(ctx context.Context, w *world) {
			for range 3 {
				w.Refers(ctx, ByWebhook, "a", one(references.ConfigMap, "c"))
			}
		}, requests{lists: 2, patches: 1}},
		"GC-20/64 writes for a referrer": {func(ctx context.Context, w *world) {
			var all []Key
			var refers []references.Reference
			for i := range 1000 {
				all = append(all, Key{references.Secret, "a", strconv.Itoa(i)})
				refers = append(refers, references.Reference{Kind: references.Secret, Name: strconv.Itoa(i)})
			}
			w.Replace(all)
			w.Refers(ctx, ByEngine, "a", func() []references.Reference { return refers })
		}, requests{patches: 64}},
		"GC-20/nothing without a collector": {func(ctx context.Context, _ *world) {
			var none *Set
			none.Refers(ctx, ByEngine, "a", one(references.ConfigMap, "c"))
			none.Writes(ctx, &unstructured.Unstructured{})
			none.Admits(ctx, &admissionv1.AdmissionRequest{})
		}, requests{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, doomed(references.ConfigMap, "a", "c"))
			tc.do(t.Context(), w)
			expect.Equal(t, (requests{w.lists, w.patches}), tc.want)
		})
	}
}

// GC-20: an unmarking that fails keeps nobody waiting, and the object is spared until it was unmarked or marked anew.
func TestSpared(t *testing.T) {
	object := doomed(references.ConfigMap, "a", "c")
	key := Key{references.ConfigMap, "a", "c"}
	w := newWorld(t, object)
	w.Replace([]Key{key})
	w.refuse = errors.New("no")
	w.Refers(t.Context(), ByEngine, "a", one(references.ConfigMap, "c"))
	w.Replace([]Key{key})
	expect.True(t, w.Unmarked(key), "GC-20: the next run of the collector forgets who referred to it")
	if err := w.Unmark(t.Context(), ByEngine, key); err == nil || !w.Unmarked(key) {
		t.Errorf("GC-20: an unmarking that fails returns %v, and spared is %v", err, w.Unmarked(key))
	}
	w.refuse = nil
	w.Refers(t.Context(), ByEngine, "a", one(references.ConfigMap, "c"))
	expect.True(t, !w.Unmarked(key) && w.Count() == 0 && !w.marked(t, object),
		"GC-20: it is unmarked, and spared is %v, known are %d", w.Unmarked(key), w.Count())
	w.Mark(key)
	w.refuse = errors.New("no")
	w.Refers(t.Context(), ByEngine, "a", one(references.ConfigMap, "c"))
	if w.Mark(key); w.Unmarked(key) {
		t.Error("GC-20: the new mark is younger than the reference")
	}
}

// GC-20: a run of the collector says anew what is marked, and learns what was before; objects that are marked during a run are added.
func TestReplace(t *testing.T) {
	w := newWorld(t)
	a, b, c := Key{references.ConfigMap, "n", "a"}, Key{references.Secret, "n", "b"}, Key{references.ConfigMap, "m", "c"}
	if before := w.Replace([]Key{a, b}); len(before) != 0 || w.Count() != 2 {
		t.Errorf("GC-20: before the first run %v were known, after it %d", before, w.Count())
	}
	if w.Mark(c); w.Count() != 3 {
		t.Errorf("GC-20: %d are known after one was marked", w.Count())
	}
	w.refuse = errors.New("no")
	w.Refers(t.Context(), ByEngine, "n", one(references.ConfigMap, "a"))
	if before := w.Replace([]Key{b}); len(before) != 3 || w.Count() != 1 || w.Unmarked(a) {
		t.Errorf("GC-20: before the second run %v were known, after it %d; a is spared: %v", before, w.Count(), w.Unmarked(a))
	}
	if w.Replace([]Key{a}); w.Unmarked(a) {
		t.Error("GC-20: a is spared, though it was not marked when something referred to it")
	}
}

// GC-20: each kind of referrer unmarks, as an object that the engine writes and as one that a webhook admits.
func TestReferrers(t *testing.T) {
	m := metav1.ObjectMeta{Namespace: "a", Name: "h"}
	volumes := corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}}
	template := corev1.PodTemplateSpec{Spec: volumes}
	prometheusObject := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": map[string]any{"namespace": "a", "name": "h"},
		"spec": map[string]any{"volumes": []any{map[string]any{"name": "v", "secret": map[string]any{"secretName": "s"}}}},
	}}
	all := map[schema.GroupVersionKind]runtime.Object{
		appsv1.SchemeGroupVersion.WithKind("Deployment"):     &appsv1.Deployment{ObjectMeta: m, Spec: appsv1.DeploymentSpec{Template: template}},
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"):    &appsv1.StatefulSet{ObjectMeta: m, Spec: appsv1.StatefulSetSpec{Template: template}},
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"):      &appsv1.DaemonSet{ObjectMeta: m, Spec: appsv1.DaemonSetSpec{Template: template}},
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):     &appsv1.ReplicaSet{ObjectMeta: m, Spec: appsv1.ReplicaSetSpec{Template: template}},
		batchv1.SchemeGroupVersion.WithKind("Job"):           &batchv1.Job{ObjectMeta: m, Spec: batchv1.JobSpec{Template: template}},
		batchv1.SchemeGroupVersion.WithKind("CronJob"):       &batchv1.CronJob{ObjectMeta: m, Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}}}},
		corev1.SchemeGroupVersion.WithKind("Pod"):            &corev1.Pod{ObjectMeta: m, Spec: volumes},
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"): &corev1.ServiceAccount{ObjectMeta: m, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}}},
		resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"): &resourcesv1alpha1.ManagedResource{
			ObjectMeta: m, Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: "s"}}},
		},
		references.PrometheusKind.WithVersion("v1"): prometheusObject,
	}
	expect.True(t, len(all) == len(referrers), "there are %d kinds", len(referrers))
	for kind, object := range all {
		raw, err := json.Marshal(object)
		must.Succeed(t, err)
		content := map[string]any{}
		must.Succeed(t, json.Unmarshal(raw, &content))
		written := &unstructured.Unstructured{Object: content}
		written.SetGroupVersionKind(kind)
		if raw, err = json.Marshal(written); err != nil {
			t.Fatal(err)
		}
		request := func(operation admissionv1.Operation, dry bool) *admissionv1.AdmissionRequest {
			return &admissionv1.AdmissionRequest{
				Kind: metav1.GroupVersionKind(kind), Operation: operation, Namespace: "a", DryRun: ptr.To(dry), Object: runtime.RawExtension{Raw: raw},
			}
		}
		for name, tc := range map[string]struct {
			pass func(context.Context, *world)
			want bool
		}{
			"written":               {func(ctx context.Context, w *world) { w.Writes(ctx, written) }, true},
			"admitted at creation":  {func(ctx context.Context, w *world) { w.Admits(ctx, request(admissionv1.Create, false)) }, true},
			"admitted at an update": {func(ctx context.Context, w *world) { w.Admits(ctx, request(admissionv1.Update, false)) }, true},
			"a dry run":             {func(ctx context.Context, w *world) { w.Admits(ctx, request(admissionv1.Create, true)) }, false},
			"a deletion":            {func(ctx context.Context, w *world) { w.Admits(ctx, request(admissionv1.Delete, false)) }, false},
		} {
			secret, other := doomed(references.Secret, "a", "s"), doomed(references.ConfigMap, "a", "s")
			w := newWorld(t, secret, other)
			tc.pass(t.Context(), w)
			if unmarked := !w.marked(t, secret); unmarked != tc.want || !w.marked(t, other) {
				t.Errorf("GC-20: %s, %s: unmarked is %v", kind.Kind, name, unmarked)
			}
		}
	}
}

// GC-20: an object whose rest cannot be read counts by its annotations.
func TestUnreadableReferrer(t *testing.T) {
	secret := doomed(references.Secret, "a", "s")
	w := newWorld(t, secret)
	annotations := map[string]any{references.Reference{Kind: references.Secret, Name: "s"}.AnnotationKey(): "s"}
	w.Writes(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "a", "name": "d", "annotations": annotations}, "spec": "none",
	}})
	expect.False(t, w.marked(t, secret), "GC-20: it is not unmarked")
}
