package targetcluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestHeldTwiceCountsOnce holds that a list that begins anew, as one does after 410, does not use up the room for objects.
func TestHeldTwiceCountsOnce(t *testing.T) {
	l := newLive()
	object := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "uid": "u"}}}
		o.SetGroupVersionKind(configMaps)
		return o
	}
	s := scope{gvk: configMaps}
	for _, name := range []string{"a", "a", "b"} {
		l.hold(s, object(name))
	}
	if held := l.take(types.UID("u")); held == nil || held.GetName() != "b" {
		t.Errorf("held is %v, want the latest", held)
	}
	if len(l.held) != 0 || l.size != 0 {
		t.Errorf("%d objects are held, and %d bytes count", len(l.held), l.size)
	}
}
