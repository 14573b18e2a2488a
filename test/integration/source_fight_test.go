package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/env/harness"
)

// MRB-41: two managers overwrite a Secret, or the specification of a ManagedResource, in turn: an Event names both and
// nothing of what they write, changes are applied more and more rarely, and the last one is applied in any case.
func TestSourceFight(t *testing.T) {
	for name, c := range map[string]struct {
		kind      string
		overwrite func(f *fixture, manager, value string) error
	}{
		"MRB-41/a Secret": {meta.KindSecret, func(f *fixture, manager, value string) error {
			manifests := strings.ReplaceAll(configMap("cm", "data: {a: "+value+"}\n"), "$NS", f.ns)
			data := map[string]any{"stringData": map[string]any{"data.yaml": manifests}}
			return f.seed.Patch(f.ctx, harness.Secret(f.ns, "mr", nil), harness.MergePatch(data), client.FieldOwner(manager))
		}},
		"MRB-41/a specification": {meta.KindManagedResource, func(f *fixture, manager, value string) error {
			f.secret("mr-"+value, map[string]string{"data.yaml": configMap("cm", "data: {a: "+value+"}\n")})
			spec := map[string]any{"spec": map[string]any{"secretRefs": []any{map[string]any{"name": "mr-" + value}}}}
			return f.seed.Patch(f.ctx, harness.ManagedResource(f.ns, "mr"), harness.MergePatch(spec), client.FieldOwner(manager))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.managed("mr", configMap("cm", "data: {a: first}\n"))
			f.settled("mr")
			applied := func() string { return nested(f.get("v1", "ConfigMap", "cm"), "data", "a") }
			write := func(i int) string {
				manager := []string{"gardenlet", "extension"}[i%2]
				value := "value-of-" + manager
				f.must(c.overwrite(f, manager, value))
				return value
			}
			last, told, held := "", corev1.Event{}, 0
			for i := 0; i < 200 && held < 8; i++ {
				last = write(i)
				pass(f.ctx, 300*time.Millisecond)
				if told.Name == "" {
					told = f.sourceFight("mr")
				} else if applied() != last {
					held++
				}
			}
			want := fmt.Sprintf(`%s mr is overwritten alternately by "extension" and "gardenlet"`, c.kind)
			if !strings.HasPrefix(told.Message, want) || told.Type != corev1.EventTypeWarning || strings.Contains(told.Message, "value-of") {
				t.Fatalf("MRB-41: the Event is %s %q", told.Type, told.Message)
			}
			if held < 8 {
				t.Errorf("MRB-41: changes are not held back")
			}
			f.eventually(func() error {
				if got := applied(); got != last {
					return fmt.Errorf("MRB-41: %s is applied, and %s was written last", got, last)
				}
				return nil
			})
			f.must(c.overwrite(f, "gardenlet", "wished-for"))
			annotations := map[string]any{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
			f.must(f.seed.Patch(f.ctx, harness.ManagedResource(f.ns, "mr"), harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": annotations}})))
			f.must(harness.Poll(f.ctx, 3*time.Second, func() error {
				if got := applied(); got != "wished-for" {
					return fmt.Errorf("MRB-41: a run that was asked for is held back, %s is applied", got)
				}
				return nil
			}))
		})
	}
}

// sourceFight returns the Event about a fight over the source; its zero value if there is none.
func (f *fixture) sourceFight(name string) corev1.Event {
	events := &corev1.EventList{}
	f.must(f.seed.List(f.ctx, events, client.InNamespace(f.ns)))
	for _, event := range events.Items {
		if event.InvolvedObject.Name == name && event.Reason == meta.ReasonSourceFight {
			return event
		}
	}
	return corev1.Event{}
}

// MRB-41: one manager that changes its content quickly, also back and forth, is not slowed down, and no Event names it.
func TestOneWriterOfTheSourceIsNoFight(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("cm", "data: {a: first}\n"))
	f.settled("mr")
	for i := range 30 {
		want := []string{"one", "two"}[i%2]
		f.secret("mr", map[string]string{"data.yaml": configMap("cm", "data: {a: "+want+"}\n")})
		f.must(harness.Poll(f.ctx, 5*time.Second, func() error {
			if got := nested(f.get("v1", "ConfigMap", "cm"), "data", "a"); got != want {
				return fmt.Errorf("MRB-41: change %d: %s is applied", i, got)
			}
			return nil
		}))
	}
	if told := f.sourceFight("mr"); told.Name != "" {
		t.Errorf("MRB-41: the Event is %q", told.Message)
	}
}
