package managedresource

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// MRB-8: where only the API server knows that a write changes nothing, it is asked once: until the manifest or the object is another
// one, somebody asks for it, or a while has passed.
func TestWritesInVain(t *testing.T) {
	f := newFixture(t)
	f.target.dropped = "gated"
	manifest := func(version, value string) {
		f.manifests("m", version, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: a}\ndata: {v: '%s', gated: x}\n", value))
	}
	f.managed("m")
	manifest("2", "1")
	f.settle("m")
	runs := func(what string, want int) {
		t.Helper()
		before := f.target.count(http.MethodPut)
		for range 5 { // Nothing is watched, so that each run looks.
			f.settle("m")
		}
		if got := f.target.count(http.MethodPut) - before; got != want {
			t.Errorf("%s: %d writes, want %d", what, got, want)
		}
	}
	runs("as created", 1)
	f.edited("a", setValue("theirs"))
	runs("edited", 1)
	if value, _ := f.target.value("a"); value != "1" {
		t.Errorf("the value is %s", value)
	}
	manifest("3", "2")
	runs("another manifest", 2) // One that changes something, and one in vain.
	f.edited("a", setAnnotation("theirs", "x"))
	runs("with a foreign annotation", 1)
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	})
	runs("asked for", 1)
	f.clock.SetTime(f.clock.Now().Add(2*vainFor + time.Second))
	runs("some time later", 1)
	f.target.mu.Lock()
	f.target.dropped = ""
	f.target.mu.Unlock()
	f.clock.SetTime(f.clock.Now().Add(2*vainFor + time.Second))
	runs("once it is taken", 1)
	if f.live("a").Object["data"].(map[string]any)["gated"] != "x" {
		t.Error("the field is not there")
	}
}

func TestVainIsBounded(t *testing.T) {
	f := newFixture(t)
	for i := range 3 * maxVain {
		f.vain.note(f.clock.Now(), write{live: uint64(i)})
	}
	if n := len(f.vain.now) + len(f.vain.before); n > 2*maxVain {
		t.Errorf("%d writes are remembered", n)
	}
}
