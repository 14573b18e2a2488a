package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// ROL-1, ROL-4, ROL-5, ROL-7: a content that cannot be applied halts its group at the first wave; the second one keeps what it has, and drift of that is
// repaired. A repaired content arrives everywhere.
func TestRolloutGroup(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: f.ns, Labels: map[string]string{resourcesv1alpha1.LabelRolloutGroup: ""}},
		Data:       map[string]string{"waves": "- selector: wave=first\n", "pause": "2s"},
	}
	f.must(f.seed.Create(f.ctx, group))
	t.Cleanup(func() { _ = f.seed.Delete(f.ctx, group) })
	deliver := func(name, value, more string) {
		t.Helper()
		f.secret(name+"-"+value, map[string]string{"data.yaml": configMap(name, "data: {a: "+value+"}\n") + more})
		spec := map[string]any{"spec": map[string]any{"secretRefs": []any{map[string]any{"name": name + "-" + value}}}}
		f.must(f.seed.Patch(f.ctx, harness.ManagedResource(f.ns, name), harness.MergePatch(spec)))
	}
	has := func(name, want string) error {
		if got := nested(f.get("v1", "ConfigMap", name), "data", "a"); got != want {
			held, message := harness.Condition(f.mr(name), resourcesv1alpha1.RolloutHeld)
			return fmt.Errorf("%s has %q, want %q: %s %s", name, got, want, held, message)
		}
		return nil
	}
	for _, name := range []string{"first", "second"} {
		f.managed(name, configMap(name, "data: {a: one}\n"), func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Labels = map[string]string{"wave": name}
			mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationRolloutGroup: f.ns}
		})
		f.settled(name)
	}

	const broken = "---\napiVersion: example.com/v1\nkind: NotServed\nmetadata: {name: x}\n"
	deliver("second", "two", broken)
	deliver("first", "two", broken)
	f.condition("second", resourcesv1alpha1.RolloutHeld, "True/RolloutHalted", "$NS/first failed (ResourcesApplied is False, ApplyFailed")
	edited := f.get("v1", "ConfigMap", "second")
	f.must(f.shoot.Patch(f.ctx, edited, harness.MergePatch(map[string]any{"data": map[string]any{"a": "by hand"}}), client.FieldOwner("somebody")))
	f.eventually(func() error { return has("second", "one") })

	deliver("first", "three", "")
	deliver("second", "three", "")
	f.eventually(func() error { return has("first", "three") })
	f.eventually(func() error { return has("second", "three") })
	f.condition("second", resourcesv1alpha1.RolloutHeld, "False/RolloutLetGo")
	f.settled("second")
}
