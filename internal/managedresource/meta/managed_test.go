package meta

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func mrWith(class string, finalizers ...string) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{}
	if class != "-" {
		mr.Spec.Class = &class
	}
	mr.Finalizers = finalizers
	return mr
}

func TestClass(t *testing.T) {
	base, seed := resourcesv1alpha1.FinalizerName, resourcesv1alpha1.FinalizerName+"-seed"
	for name, tc := range map[string]struct {
		class string
		mr    *resourcesv1alpha1.ManagedResource
		want  string // responsible, owns, hand-over out, waits
	}{
		"MRK-1/MRK-2 default, none":                {"", mrWith("-"), "true false false false"},
		"MRK-2 default, empty":                     {"resources", mrWith(""), "true false false false"},
		"MRK-2 default, named":                     {"resources", mrWith("resources", base), "true true false false"},
		"MRK-2 default, other":                     {"", mrWith("seed"), "false false false false"},
		"MRK-2 seed, none":                         {"seed", mrWith("-"), "false false false false"},
		"MRK-2 every class":                        {"*", mrWith("seed", base), "true true false false"},
		"MRK-5 hand-over out":                      {"", mrWith("seed", base), "false true true false"},
		"MRK-6 hand-over in":                       {"seed", mrWith("seed", base), "true false false true"},
		"MRK-6/MRB-23 own and foreign":             {"seed", mrWith("seed", seed, base), "true true false true"},
		"MRK-6 other finalizers do not matter":     {"seed", mrWith("seed", "foo"), "true false false false"},
		"MRB-23 neither responsible, own":          {"seed", mrWith("other", base), "false false false false"},
		"MRK-3 finalizer of a class with a prefix": {"see", mrWith("see", seed), "true false false true"},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClass(tc.class)
			expect.Equal(t, fmt.Sprint(c.Responsible(tc.mr), c.Owns(tc.mr), c.MovedAway(tc.mr), c.WaitsForHandOver(tc.mr)), tc.want)
		})
	}
	for class, want := range map[string]string{"": base, "resources": base, "*": base, "seed": seed} {
		expect.Equal(t, NewClass(class).Finalizer(), want, "MRK-3 %q", class)
	}
}

// MR-13: each field of an entry counts, and how what is not there is written does not.
func TestInventoryDigest(t *testing.T) {
	entry := func(change func(*resourcesv1alpha1.ObjectReference)) []resourcesv1alpha1.ObjectReference {
		e := resourcesv1alpha1.ObjectReference{Labels: map[string]string{"a": "b", "c": "d"}}
		e.APIVersion, e.Kind, e.Name = "v1", "ConfigMap", "x"
		if change != nil {
			change(&e)
		}
		return []resourcesv1alpha1.ObjectReference{e}
	}
	one := entry(nil)
	for name, other := range map[string][]resourcesv1alpha1.ObjectReference{
		"the same":              entry(nil),
		"no annotations":        entry(func(e *resourcesv1alpha1.ObjectReference) { e.Annotations = map[string]string{} }),
		"another label":         entry(func(e *resourcesv1alpha1.ObjectReference) { e.Labels["a"] = "c" }),
		"a label as annotation": entry(func(e *resourcesv1alpha1.ObjectReference) { e.Labels, e.Annotations = nil, e.Labels }),
		"a UID":                 entry(func(e *resourcesv1alpha1.ObjectReference) { e.UID = "u" }),
		"planned":               entry(func(e *resourcesv1alpha1.ObjectReference) { *e = AsTentative(*e) }),
		"none":                  {},
		"nil":                   nil,
		"two":                   append(entry(nil), entry(nil)...),
	} {
		expect.Equal(t, InventoryDigest(one) == InventoryDigest(other), SameInventory(one, other), "MR-13: %s: the same digest", name)
	}
}

func TestOrigin(t *testing.T) {
	key := types.NamespacedName{Namespace: "bar", Name: "baz"}
	for value, want := range map[string]Origin{"bar/baz": {Key: key}, "foo:bar/baz": {ClusterID: "foo", Key: key}} {
		got, err := ParseOrigin(value)
		expect.True(t, err == nil && got == want && got.String() == value, "MRC-8 %s: got %v, %v", value, got, err)
	}
	for _, value := range []string{"", "foo", "id/foo/bar", "id:foo", "a:b:c", "a:b:c/d", "/", "bar/", "/baz", "id:/"} {
		got, err := ParseOrigin(value)
		expect.Error(t, err, "MRC-8 %q: got %v", value, got)
	}
}

func TestTruthy(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "t": true, "T": true, "true": true, "TRUE": true, "True": true, "yes": false, "": false, "0": false, "false": false} {
		expect.Equal(t, Truthy(map[string]string{"a": value}, "a"), want, "BH-MR-23 %q", value)
	}
}

// BH-MR-22: a condition says why, since when it is so, and when that was last said.
func TestConditions(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	later := start.Add(time.Minute)
	first, changed := Conditions(nil).With(start, DeletingChanges()...)
	must.True(t, changed && len(first) == 2 && first[0].Type == resourcesv1alpha1.ResourcesHealthy,
		"MRS-1/MRS-3: got %v", first)
	expect.False(t, expect.OK(first.With(later, DeletingChanges()...)), "MRS-2: the same again is no change")
	flip := DeletingChanges()[0]
	flip.Status = resourcesv1alpha1.ConditionTrue
	flipped, _ := first.With(later, flip)
	if got := flipped[0]; !got.LastTransitionTime.Time.Equal(later) || !got.LastUpdateTime.Time.Equal(start) {
		t.Errorf("MRS-2 status: got %v", got)
	}
	text := DeletingChanges()[0]
	text.Message = "other"
	updated, _ := first.With(later, text)
	if got := updated[0]; !got.LastTransitionTime.Time.Equal(start) || !got.LastUpdateTime.Time.Equal(later) {
		t.Errorf("MRS-2 message: got %v", got)
	}
	if got := first[0]; got.Type == "" || got.Status == "" || got.Reason == "" || got.LastTransitionTime.IsZero() || got.LastUpdateTime.IsZero() {
		t.Errorf("BH-MR-22: a condition lacks a field: %+v", got)
	}
	expect.Equal(t, first[0].Message, MessageDeleting, "the receiver was changed")
	empty, _ := Conditions(nil).With(start, ConditionChange{Type: "Other", Status: "True"})
	expect.Equal(t, empty[0].Reason+"/"+empty[0].Message, "Unspecified/No message given.", "MRS-2")
}

func TestInvalidation(t *testing.T) {
	failed := Conditions{{Type: resourcesv1alpha1.ResourcesApplied, Status: "False", Reason: resourcesv1alpha1.ReasonApplyFailed, Message: "m"}}
	fine := Conditions{{Type: resourcesv1alpha1.ResourcesApplied, Status: "True", Reason: resourcesv1alpha1.ReasonApplySucceeded, Message: "m"}}
	for name, tc := range map[string]struct {
		conditions Conditions
		same       bool
		want       ConditionChange
	}{
		"MRS-5 new":                 {nil, false, Applied("Progressing", "ApplyProgressing", MessageApplying)},
		"MRS-5 after success":       {fine, false, Applied("Progressing", "ApplyProgressing", MessageApplying)},
		"MRS-5 after a failure":     {failed, false, Applied("Progressing", "ApplyFailed", "m")},
		"MRB-19 the same once more": {failed, true, Applied("False", "ApplyFailed", "m")},
	} {
		t.Run(name, func(t *testing.T) {
			changes := tc.conditions.Invalidation(tc.same)
			expect.DeepEqual(t, changes[2], tc.want)
			expect.True(t, changes[0].Reason == "ChecksPending" && changes[1].Reason == "ChecksPending", "got %v", changes)
		})
	}
}
