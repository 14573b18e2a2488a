package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

// patience is the longest time that an expectation may take to come true; it is never waited for in full unless a test fails.
const patience = 30 * time.Second

// fixture is a namespace of its own in both clusters.
type fixture struct {
	testing.TB
	ctx   context.Context
	ns    string
	seed  client.Client
	shoot client.Client
	// killed are processes that did not end in order.
	killed map[*harness.Process]bool
}

// minor returns the minor version of Kubernetes: make versions runs these tests with older ones.
func (f *fixture) minor() int {
	f.Helper()
	asks, err := discovery.NewDiscoveryClientForConfig(landscape.SeedREST)
	f.must(err)
	info, err := asks.ServerVersion()
	f.must(err)
	minor, err := strconv.Atoi(info.Minor)
	f.must(err)
	return minor
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	f := &fixture{TB: t, ctx: ctx, seed: landscape.SeedClient, shoot: landscape.ShootClient}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	f.must(f.seed.Create(ctx, namespace))
	f.ns = namespace.Name
	f.must(f.shoot.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.ns}}))
	t.Cleanup(cancel)
	t.Cleanup(func() {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := f.seed.List(ctx, list, client.InNamespace(f.ns)); err == nil {
			for i := range list.Items {
				_ = f.seed.Patch(ctx, &list.Items[i], harness.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}}))
				_ = f.seed.Delete(ctx, &list.Items[i])
			}
		}
	})
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	must.Succeed(f, err)
}

// eventually waits until a check succeeds.
func (f *fixture) eventually(check func() error) {
	f.Helper()
	must.Succeed(f, harness.Poll(f.ctx, patience, check))
}

// collected waits for what two runs of the garbage collector bring about, which are a period apart (GC-18).
func (f *fixture) collected(check func() error) {
	f.Helper()
	must.Succeed(f, harness.Poll(f.ctx, 2*patience, check))
}

// stays makes sure that a check does not fail for a while.
func (f *fixture) stays(forHowLong time.Duration, check func() error) {
	f.Helper()
	deadline := time.Now().Add(forHowLong)
	for time.Now().Before(deadline) {
		must.Succeed(f, check())
		select {
		case <-f.ctx.Done():
			f.Fatal(f.ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// secret creates or replaces a Secret; $NS in the manifests stands for the fixture's namespace.
func (f *fixture) secret(name string, data map[string]string) {
	f.Helper()
	values := map[string][]byte{}
	for key, value := range data {
		values[key] = []byte(strings.ReplaceAll(value, "$NS", f.ns))
	}
	secret := harness.Secret(f.ns, name, values)
	err := f.seed.Create(f.ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		present := &corev1.Secret{}
		f.must(f.seed.Get(f.ctx, client.ObjectKeyFromObject(secret), present))
		present.Data = values
		err = f.seed.Update(f.ctx, present)
	}
	f.must(err)
}

// managed creates a Secret with one key and a ManagedResource of the same name, and returns the latter.
func (f *fixture) managed(name, manifests string, change ...func(*resourcesv1alpha1.ManagedResource)) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	f.secret(name, map[string]string{"data.yaml": manifests})
	mr := harness.ManagedResource(f.ns, name, name)
	for _, c := range change {
		c(mr)
	}
	f.must(f.seed.Create(f.ctx, mr))
	return mr
}

func (f *fixture) mr(name string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	f.must(f.seed.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: name}, mr))
	return mr
}

func (f *fixture) settled(name string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	var mr *resourcesv1alpha1.ManagedResource
	f.eventually(func() error {
		mr = f.mr(name)
		return harness.Settled(mr)
	})
	return mr
}

// condition waits until a condition is as wanted and its message contains all the parts.
func (f *fixture) condition(name string, conditionType resourcesv1alpha1.ConditionType, want string, parts ...string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	var mr *resourcesv1alpha1.ManagedResource
	f.eventually(func() error {
		mr = f.mr(name)
		got, message := harness.Condition(mr, conditionType)
		if got != want {
			return fmt.Errorf("%s is %q, want %q: %s", conditionType, got, want, message)
		}
		for _, part := range parts {
			if !strings.Contains(message, strings.ReplaceAll(part, "$NS", f.ns)) {
				return fmt.Errorf("%s: message %q does not contain %q", conditionType, message, part)
			}
		}
		return nil
	})
	return mr
}

func (f *fixture) applied(name, want string, parts ...string) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	return f.condition(name, resourcesv1alpha1.ResourcesApplied, want, parts...)
}

// get reads an object of the fixture's namespace in the shoot.
func (f *fixture) get(apiVersion, kind, name string) *unstructured.Unstructured {
	f.Helper()
	object := harness.Object(apiVersion, kind, f.ns, name)
	f.must(f.shoot.Get(f.ctx, client.ObjectKeyFromObject(object), object))
	return object
}

func (f *fixture) exists(apiVersion, kind, name string) *unstructured.Unstructured {
	f.Helper()
	object := harness.Object(apiVersion, kind, f.ns, name)
	f.eventually(func() error { return f.shoot.Get(f.ctx, client.ObjectKeyFromObject(object), object) })
	return object
}

func (f *fixture) gone(apiVersion, kind, name string) {
	f.Helper()
	f.eventually(func() error {
		object := harness.Object(apiVersion, kind, f.ns, name)
		err := f.shoot.Get(f.ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s %s is still there (error %v)", kind, name, err)
	})
}

func (f *fixture) mrGone(name string) {
	f.Helper()
	f.eventually(func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		err := f.seed.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: name}, mr)
		if apierrors.IsNotFound(err) {
			return nil
		}
		_, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied)
		return fmt.Errorf("ManagedResource %s is still there: %s", name, message)
	})
}

func (f *fixture) patchMR(name string, patch map[string]any) {
	f.Helper()
	f.must(f.seed.Patch(f.ctx, harness.ManagedResource(f.ns, name), harness.MergePatch(patch)))
}

func (f *fixture) patch(object *unstructured.Unstructured, patch map[string]any) {
	f.Helper()
	f.must(f.shoot.Patch(f.ctx, object, harness.MergePatch(patch)))
}

func (f *fixture) annotateMR(name, key string, value any) {
	f.Helper()
	f.patchMR(name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

func configMap(name string, more ...string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: $NS\n" + strings.Join(more, "")
}

func compress(t testing.TB, plain string) string {
	t.Helper()
	compressed, err := harness.Compress([]byte(plain))
	must.Succeed(t, err)
	return string(compressed)
}

// rule returns the fixture with a rule of the contract before the text of each of its failures: f.rule("MRX-3: …").gone("v1", "ConfigMap", "a").
func (f *fixture) rule(text string) *fixture {
	named := *f
	named.TB = ruleTB{f.TB, text}
	return &named
}

// ruleTB is a test whose failures name a rule.
type ruleTB struct {
	testing.TB
	rule string
}

func (t ruleTB) Fatal(args ...any) {
	t.Helper()
	t.TB.Fatal(append([]any{t.rule + ": "}, args...)...)
}

func (t ruleTB) Fatalf(format string, args ...any) {
	t.Helper()
	t.TB.Fatalf("%s: %s", t.rule, fmt.Sprintf(format, args...))
}
