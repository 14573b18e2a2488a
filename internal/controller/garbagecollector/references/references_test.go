package references

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	"github.com/espalier-project/espalier/test/expect"
)

// GC-5, R11: exactly the minimum age is old enough; what is being deleted is left alone.
func TestOld(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	object := &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}
	for after, want := range map[time.Duration]bool{5 * time.Minute: false, 10*time.Minute - 1: false, 10 * time.Minute: true, time.Hour: true} {
		expect.Equal(t, Old(object, 10*time.Minute, created.Add(after)), want, "after %s", after)
	}
	expect.True(t, Old(object, 0, created), "R11: no minimum age")
	object.DeletionTimestamp = &object.CreationTimestamp
	expect.False(t, Old(object, 10*time.Minute, created.Add(time.Hour)), "1.6: it is being deleted already")
}

// GC-8: a reference counts in the namespace of its holder, and for the kind that it names.
func TestInUse(t *testing.T) {
	g := NewGraph()
	g.Hold("Pod", "default", "p", []references.Reference{{Kind: references.ConfigMap, Name: "a"}})
	for _, tc := range []struct {
		kind      references.Kind
		namespace string
		want      bool
	}{{references.ConfigMap, "default", true}, {references.Secret, "default", false}, {references.ConfigMap, "kube-system", false}} {
		expect.Equal(t, g.InUse(tc.kind, tc.namespace, "a"), tc.want, "%s in %s", tc.kind, tc.namespace)
	}
}

// T3-8: an object that cannot be read protects everything in its own namespace, and nothing in another one.
func TestHoldNamespace(t *testing.T) {
	g := NewGraph()
	g.HoldNamespace("default")
	for name, tc := range map[string]struct {
		namespace string
		want      bool
	}{"T3-8/its own namespace": {"default", true}, "T3-8/another namespace": {"kube-system", false}} {
		for _, kind := range []references.Kind{references.ConfigMap, references.Secret} {
			expect.Equal(t, g.InUse(kind, tc.namespace, "a"), tc.want, "%s: %s", name, kind)
		}
	}
}

// TestPropertyInUse: whatever holders come, change and go, in whatever order, what is in use is what a search among them finds.
func TestPropertyInUse(t *testing.T) {
	type who struct{ kind, namespace, name string }
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	kinds := rapid.SampledFrom([]references.Kind{references.ConfigMap, references.Secret})
	reference := rapid.Custom(func(rt *rapid.T) references.Reference {
		return references.Reference{Kind: kinds.Draw(rt, "kind"), Name: names.Draw(rt, "name")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		g, model := NewGraph(), map[who][]references.Reference{}
		for range rapid.IntRange(0, 20).Draw(rt, "changes") {
			h := who{rapid.SampledFrom([]string{"Pod", "Job"}).Draw(rt, "holder"), names.Draw(rt, "namespace"), names.Draw(rt, "name")}
			model[h] = rapid.SliceOfN(reference, 0, 3).Draw(rt, "references")
			g.Hold(h.kind, h.namespace, h.name, model[h])
		}
		for _, kind := range []references.Kind{references.ConfigMap, references.Secret} {
			for _, namespace := range []string{"a", "b", "c"} {
				for _, name := range []string{"a", "b", "c"} {
					want := false
					for h, refers := range model {
						for _, r := range refers {
							want = want || h.namespace == namespace && r.Kind == kind && r.Name == name
						}
					}
					if got := g.InUse(kind, namespace, name); got != want {
						rt.Fatalf("%s %s/%s is in use: %v, want %v; %v", kind, namespace, name, got, want, model)
					}
				}
			}
		}
	})
}
