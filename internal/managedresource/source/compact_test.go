package source

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// TestPropertyOfCompact: what is compacted equals what it was, and entries with equal maps share one.
func TestPropertyOfCompact(t *testing.T) {
	few := func(n int) *rapid.Generator[string] { return rapid.SampledFrom([]string{"", "a", "b", "c"}[:n]) }
	maps := rapid.Custom(func(t *rapid.T) map[string]string {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return rapid.MapOfN(few(4), few(4), 0, 2).Draw(t, "map")
	})
	rapid.Check(t, func(t *rapid.T) {
		mr := &resourcesv1alpha1.ManagedResource{}
		for i := range rapid.IntRange(0, 20).Draw(t, "objects") {
			mr.Status.Resources = append(mr.Status.Resources, resourcesv1alpha1.ObjectReference{
				ObjectReference: corev1.ObjectReference{APIVersion: few(4).Draw(t, "version"), Kind: few(4).Draw(t, "kind"), Namespace: few(4).Draw(t, "namespace"), Name: fmt.Sprint(i)},
				Labels:          maps.Draw(t, "labels"), Annotations: maps.Draw(t, "annotations"),
			})
		}
		before := mr.DeepCopy()
		compact(mr)
		expect.DeepEqual(t, mr, before, "it is another one")
		if len(mr.Status.Resources) != cap(mr.Status.Resources) && cap(mr.Status.Resources) > len(mr.Status.Resources)+2 {
			t.Fatalf("there is room for %d entries, of %d", cap(mr.Status.Resources), len(mr.Status.Resources))
		}
	})
	labels := func() map[string]string { return map[string]string{"managed-by": "gardener"} }
	mr := &resourcesv1alpha1.ManagedResource{Status: resourcesv1alpha1.ManagedResourceStatus{Resources: []resourcesv1alpha1.ObjectReference{{Labels: labels()}, {Labels: labels()}}}}
	compact(mr)
	a, b := mr.Status.Resources[0].Labels, mr.Status.Resources[1].Labels
	expect.Equal(t, reflect.ValueOf(a).Pointer(), reflect.ValueOf(b).Pointer(), "equal labels are two maps")
}
