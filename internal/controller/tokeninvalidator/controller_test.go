package tokeninvalidator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/tokeninvalidator/invalidation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var key = client.ObjectKey{Namespace: "ns", Name: "s"}

// fixture is a target; what cannot be read fails, and beforePatch runs ahead of a patch.
type fixture struct {
	*Reconciler
	*testing.T
	target      client.Client
	failGet     func(object client.Object) error
	failList    error
	beforePatch func()
	patches     int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{T: t}
	f.target = crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if f.failGet != nil {
				if err := f.failGet(object); err != nil {
					return err
				}
			}
			return c.Get(ctx, k, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if f.failList != nil {
				return f.failList
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			f.patches++
			if f.beforePatch != nil {
				before := f.beforePatch
				f.beforePatch = nil
				before()
			}
			return c.Patch(ctx, object, patch, opts...)
		},
	}).Build()
	f.Reconciler = New(Options{Live: f.target, Kept: f.target})
	return f
}

func secret(labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", Labels: labels, Annotations: map[string]string{corev1.ServiceAccountNameKey: "sa"}}, Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte("t")}}
}

func account(automount *bool) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}, AutomountServiceAccountToken: automount}
}

func (f *fixture) run() (reconcile.Result, error) {
	return f.Reconcile(f.Context(), reconcile.Request{NamespacedName: key})
}

func (f *fixture) wants(what string, want map[string]string) {
	f.Helper()
	got := &corev1.Secret{}
	must.Succeed(f, f.target.Get(f.Context(), key, got))
	if diff := cmp.Diff(want, got.Labels); diff != "" || string(got.Data["token"]) != "t" {
		f.Errorf("%s: data %d, %s", what, len(got.Data), diff)
	}
}

var (
	purpose  = map[string]string{invalidation.LabelPurpose: "token-invalidator"}
	consider = map[string]string{invalidation.LabelPurpose: "token-invalidator", invalidation.LabelConsider: "true"}
)

func TestLabels(t *testing.T) {
	skipped := account(ptr.To(false))
	skipped.Labels = map[string]string{invalidation.LabelSkip: ""}
	plain := secret(nil)
	plain.Type = corev1.SecretTypeOpaque
	noAccount := secret(nil)
	noAccount.Annotations = nil
	for name, tc := range map[string]struct {
		secret  *corev1.Secret
		account *corev1.ServiceAccount
		want    map[string]string
		patches int
	}{
		"TI-5, TI-6/automount nil":                      {secret(nil), account(nil), purpose, 1},
		"TI-5, TI-6/automount true, considered":         {secret(consider), account(ptr.To(true)), purpose, 1},
		"TI-6/skipped":                                  {secret(consider), skipped, purpose, 1},
		"TI-9/BH-TI-1, R7, automount false":             {secret(nil), account(ptr.To(false)), consider, 1},
		"TI-7/considered already":                       {secret(consider), account(ptr.To(false)), consider, 0},
		"TI-5/another purpose":                          {secret(map[string]string{invalidation.LabelPurpose: "x"}), account(ptr.To(false)), map[string]string{invalidation.LabelPurpose: "x", invalidation.LabelConsider: "true"}, 1},
		"TI-1/no annotation":                            {noAccount, account(ptr.To(false)), nil, 0},
		"BH-TI-1/another type is no token":              {plain, account(ptr.To(false)), nil, 0},
		"TI-4, 3.4/the ServiceAccount is gone for good": {secret(nil), nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.secret}
			if tc.account != nil {
				objects = append(objects, tc.account)
			}
			f := newFixture(t, objects...)
			for range 2 {
				result, err := f.run()
				expect.True(t, err == nil && result == (reconcile.Result{}), "got %+v, %v", result, err)
			}
			f.wants("TI-10", tc.want)
			expect.Equal(t, f.patches, tc.patches, "patches")
		})
	}
}

// TI-6: a token stays valid for a ServiceAccount that wants it, though a cache still has what it wanted before.
func TestAccountIsReadLive(t *testing.T) {
	f := newFixture(t, secret(nil), account(ptr.To(true)))
	f.Kept = crfake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(secret(nil), account(ptr.To(false))).Build()
	must.Succeed(t, expect.ErrorOf(f.run()))
	f.wants("the ServiceAccount mounts tokens", purpose)
}

// TI-8: a token in use is not invalidated until the last Pod is gone, and the Secret is looked at again in between.
func TestInUse(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}}}
	f := newFixture(t, secret(nil), account(ptr.To(false)), pod)
	first, err := f.run()
	second, again := f.run()
	expect.True(t, err == nil && again == nil && first.RequeueAfter > 0 && second.RequeueAfter > first.RequeueAfter,
		"got %+v, %+v, %v, %v", first, second, err, again)
	f.wants("in use", purpose)
	must.Succeed(t, f.target.Delete(t.Context(), pod))
	result, err := f.run()
	expect.True(t, err == nil && result.RequeueAfter == 0, "got %+v, %v", result, err)
	f.wants("not in use", consider)
}

// TestErrors: what is gone, what cannot be read, and a conflict.
func TestErrors(t *testing.T) {
	expect.Succeed(t, expect.ErrorOf(newFixture(t).run()), "TI-3")
	f := newFixture(t, secret(nil), account(ptr.To(false)))
	f.failGet = func(object client.Object) error {
		if _, is := object.(*corev1.ServiceAccount); is {
			return errors.New("internal")
		}
		return nil
	}
	if _, err := f.run(); err == nil || err.Error() != "could not fetch ServiceAccount: internal" {
		t.Errorf("TI-4: got %v", err)
	}
	f.failGet, f.failList = nil, errors.New("internal")
	if _, err := f.run(); err == nil || err.Error() != "could not list Pods: internal" {
		t.Errorf("TI-8: got %v", err)
	}
	f.wants("nothing is known", nil)
	f.failList = nil
	f.beforePatch = func() {
		current := &corev1.Secret{}
		must.Succeed(t, f.target.Get(t.Context(), key, current))
		current.Labels = map[string]string{"own": "x"}
		must.Succeed(t, f.target.Update(t.Context(), current))
	}
	_, err := f.run()
	expect.True(t, apierrors.IsConflict(err), "TI-9: got %v", err)
	f.wants("a conflict", map[string]string{"own": "x"})
}

// TI-1, TI-2: which Secrets are looked at after which events.
func TestEvents(t *testing.T) {
	p, other := tokens(), secret(nil)
	other.Annotations = nil
	if !p.Create(event.CreateEvent{Object: secret(nil)}) || !p.Update(event.UpdateEvent{ObjectOld: other, ObjectNew: secret(nil)}) || p.Update(event.UpdateEvent{ObjectOld: secret(nil), ObjectNew: other}) ||
		p.Create(event.CreateEvent{Object: other}) || p.Delete(event.DeleteEvent{Object: secret(nil)}) {
		t.Error("TI-1")
	}
	named := secret(nil)
	named.Name = "named"
	f := newFixture(t, named)
	before, after := account(nil), account(ptr.To(false))
	before.Secrets, after.Secrets = []corev1.ObjectReference{{Name: "was"}}, []corev1.ObjectReference{{Name: "is"}}
	queued := func(before, after client.Object) []string {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		if before == nil {
			f.accounts().Create(t.Context(), event.CreateEvent{Object: after}, queue)
		} else {
			f.accounts().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
		}
		var names []string
		for queue.Len() > 0 {
			request, _ := queue.Get()
			names = append(names, request.Namespace+"/"+request.Name)
		}
		slices.Sort(names)
		return names
	}
	expect.DeepEqual(t, queued(before, after), []string{"ns/is", "ns/named", "ns/was"}, "TI-2")
	expect.DeepEqual(t, queued(nil, after), []string{"ns/is", "ns/named"},
		"TI-2, TI-4: a ServiceAccount that comes after its Secrets")
	expect.Empty(t, queued(before, before), "TI-2: nothing has changed")
}

// TI-20: all configured workers are used. BH-TI-3: no namespace is named, so that those of the configuration count, all by default.
func TestOptions(t *testing.T) {
	r := New(Options{Config: config.SwitchableControllerConfig{ConcurrentSyncs: ptr.To(3)}})
	expect.Equal(t, r.options(time.Minute).MaxConcurrentReconciles, 3, "TI-20: workers")
	for _, read := range Reads() {
		expect.Equal(t, read.Namespace, "", "BH-TI-3: %s are read in namespace %s only", read.Resource, read.Namespace)
	}
}
