package targets

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// listener notes what it is told.
type listener struct{ reported []string }

func (l *listener) OnAdd(object any, initial bool) {
	l.reported = append(l.reported, fmt.Sprintf("add %s %t", nameOf(object), initial))
}
func (l *listener) OnUpdate(_, after any) { l.reported = append(l.reported, "update "+nameOf(after)) }
func (l *listener) OnDelete(object any)   { l.reported = append(l.reported, "delete "+nameOf(object)) }

func nameOf(object any) string {
	if lost, is := object.(cache.DeletedFinalStateUnknown); is {
		object = lost.Obj
	}
	return object.(metav1.Object).GetName()
}

// TestFeed: each follower is told of its namespace only, and first of what is there; one that panics keeps nobody from being told.
func TestFeed(t *testing.T) {
	in := func(namespace, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	f := newFeed()
	f.OnAdd(in("a", "early"), true)
	f.OnAdd(in("a", "gone"), true)
	f.OnDelete(in("a", "gone"))
	var of, other listener
	panics := 0
	endOfPanics := f.follow("a", cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("on purpose") }}, func(any) { panics++ })
	end := f.follow("a", &of, func(any) { t.Error("it did not panic") })
	f.follow("b", &other, func(any) { t.Error("it did not panic") })
	f.OnAdd(in("a", "late"), false)
	f.OnUpdate(in("a", "late"), in("a", "late"))
	f.OnDelete(cache.DeletedFinalStateUnknown{Obj: in("a", "early")})
	f.OnAdd(in("b", "else"), false)
	f.OnAdd("no object", false)
	end()
	f.OnAdd(in("a", "too-late"), false)
	if want := []string{"add early true", "add late false", "update late", "delete early"}; !slices.Equal(of.reported, want) {
		t.Errorf("told %v, want %v", of.reported, want)
	}
	if want := []string{"add else false"}; !slices.Equal(other.reported, want) {
		t.Errorf("TGT-2: told %v, want %v", other.reported, want)
	}
	if panics != 3 {
		t.Errorf("TGT-12: %d panics were told", panics)
	}
	endOfPanics()
	if len(f.followers) != 1 || len(f.known["a"]) != 2 {
		t.Errorf("followers of %d namespaces, %d objects", len(f.followers), len(f.known["a"]))
	}
}
