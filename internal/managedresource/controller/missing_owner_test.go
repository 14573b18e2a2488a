package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMissingOwner: an object whose manifest has an owner that does not exist is deleted by Kubernetes again and again: the Event names that owner.
func TestMissingOwner(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m")
	f.manifests("m", "2", configMap("a", "1", "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: 'owner', uid: 'u'}]"))
	f.complete("m")
	deleted := func() int {
		f.clock.SetTime(f.clock.Now().Add(time.Hour))
		f.goneNow("a")
		f.complete("m")
		return strings.Count(f.events(), `the garbage collector deletes it again, as its manifest has the owner v1/ConfigMap/n/owner with UID "u", which does not exist`)
	}
	if got := deleted(); got != 1 {
		t.Errorf("MRB-50: it does not exist: told %d times: %s", got, f.events())
	}
	f.target.put("owner", "1", map[string]any{"uid": "another"})
	if got := deleted(); got != 2 {
		t.Errorf("MRB-50: it has another UID: told %d times: %s", got, f.events())
	}
	f.target.put("owner", "1", map[string]any{"uid": "u"})
	if got := deleted(); got != 2 {
		t.Errorf("MRB-50: it exists: told %d times: %s", got, f.events())
	}
}

// TestHolds: finalizers come first, then the conditions of a Namespace or a definition.
func TestHolds(t *testing.T) {
	object := func(apiVersion, kind string, finalizers []any, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"finalizers": finalizers}, "status": map[string]any{"conditions": conditions},
		}}
	}
	remaining := map[string]any{"type": "NamespaceContentRemaining", "status": "True", "reason": "SomeResourcesRemain", "message": "pods. has 3 resource instances"}
	for name, c := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"MRX-12/nothing":      {object("v1", "Namespace", nil), ""},
		"MRX-12/finalizers":   {object("v1", "ConfigMap", []any{"b", "a"}, remaining), "it waits for the finalizers a, b"},
		"MRX-12/a Namespace":  {object("v1", "Namespace", nil, remaining), "SomeResourcesRemain: pods. has 3 resource instances"},
		"MRX-12/a definition": {object("apiextensions.k8s.io/v1", "CustomResourceDefinition", []any{"f"}, map[string]any{"type": "Terminating", "status": "True", "reason": "InstanceDeletionInProgress", "message": "x"}), "it waits for the finalizers f; InstanceDeletionInProgress: x"},
	} {
		if got := holdsOf(c.live); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
