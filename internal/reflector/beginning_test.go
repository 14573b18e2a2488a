package reflector

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// world is what is known of the objects of a kind: their versions by name.
type world struct {
	mu    sync.Mutex
	known map[string]string
}

func (w *world) kind(k *Kind) {
	w.known = map[string]string{}
	k.Set = func(object runtime.Object) {
		w.mu.Lock()
		defer w.mu.Unlock()
		shoot := object.(*gardencorev1beta1.Shoot)
		w.known[shoot.Name] = shoot.ResourceVersion
	}
	k.Remove = func(_, name string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.known, name)
	}
	k.Retain = func(names Names) {
		w.mu.Lock()
		defer w.mu.Unlock()
		maps.DeleteFunc(w.known, func(name, _ string) bool { return !names.Has("", name) })
	}
}

func (w *world) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		all = append(all, name+w.known[name])
	}
	return strings.Join(all, " ")
}

func event(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":%q,"resourceVersion":%q}}}`+"\n", kind, name, version)
}

const end = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"

// TestBeginning: objects count as they come. Before the end of the beginning nothing is complete and nothing that was known is gone, and a
// stream that breaks off before it says nothing about what there is not.
func TestBeginning(t *testing.T) {
	f, clock := following(t, false, &apiServer{events: []string{
		event("ADDED", "a", "1") + event("ADDED", "b", "2"),
		event("ADDED", "a", "3") + event("ADDED", "c", "4") + event("DELETED", "c", "5") + end + event("MODIFIED", "a", "6"),
	}})
	var w world
	w.kind(&f.Kind)
	w.known["gone"] = "0"
	f.Start(t.Context())
	eventually(t, "objects do not count before the end", func() bool { return w.String() == "a1 b2 gone0" })
	expect.False(t, f.Synced(), "what has no end is complete")
	eventually(t, "nobody waits", clock.HasWaiters)
	clock.Step(patience) // The stream is given up.
	eventually(t, "what the second stream says is not what is known", func() bool { return w.String() == "a6" })
	expect.True(t, f.Synced(), "it is not complete")
}

// keep puts what the reflector gets into its store.
func keep(temporary map[string]any, name string, object runtime.Object) {
	if object != nil {
		temporary[name] = object
	}
}

// TestBeginningProperty: whatever streams break off where, and however late an event of one that was given up is taken, what is known after a
// complete list is what there is.
func TestBeginningProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &Follower{}
		var w world
		w.kind(&f.Kind)
		there, version := map[string]string{}, 0
		change := func() (watch.EventType, *gardencorev1beta1.Shoot) {
			version++
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			shoot := &gardencorev1beta1.Shoot{Object: partialmeta.Object{Name: name, ResourceVersion: strconv.Itoa(version)}}
			if _, found := there[name]; found && rapid.Bool().Draw(t, "deleted") {
				delete(there, name)
				return watch.Deleted, shoot
			}
			there[name] = shoot.ResourceVersion
			return watch.Modified, shoot
		}
		object := func(name string) *gardencorev1beta1.Shoot {
			return &gardencorev1beta1.Shoot{Object: partialmeta.Object{Name: name, ResourceVersion: there[name]}}
		}
		type late struct {
			of    *beginning
			event watch.Event
		}
		var pending []late
		flush := func() {
			for _, l := range pending {
				if rapid.Bool().Draw(t, "comes late") {
					l.of.take(l.event.Type, l.event.Object)
				}
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "streams") {
			for range rapid.IntRange(0, 3).Draw(t, "changes between") {
				change()
			}
			list := rapid.Bool().Draw(t, "a list")
			b := f.begin(&metav1.ListOptions{SendInitialEvents: ptr.To(!list)})
			flush()
			temporary := map[string]any{}
			first := slices.Sorted(maps.Keys(there))
			if broken := !list && rapid.Bool().Draw(t, "breaks off"); broken {
				for i, name := range first {
					if i >= rapid.IntRange(0, len(first)).Draw(t, "events") {
						// The decoder has read it, and may be held up for as long as it likes.
						pending = append(pending, late{b, watch.Event{Type: watch.Added, Object: object(name)}})
						break
					}
					b.take(watch.Added, object(name))
				}
				continue
			}
			for _, name := range first {
				keep(temporary, name, b.take(watch.Added, object(name)))
				flush()
			}
			for range rapid.IntRange(0, 3).Draw(t, "changes before the end") {
				if list {
					break
				}
				kind, shoot := change()
				keep(temporary, shoot.Name, b.take(kind, shoot))
				if kind == watch.Deleted {
					delete(temporary, shoot.Name)
				}
			}
			if !list {
				b.take(watch.Bookmark, &gardencorev1beta1.Shoot{Object: partialmeta.Object{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
			}
			flush()
			must.Succeed(t, (store{f}).Replace(slices.Collect(maps.Values(temporary)), ""))
			flush()
			expect.Equal(t, (&world{known: there}).String(), w.String(), "known")
		}
	})
}

// TestBeginningIsSmall: the reflector gets one of a thousand events of a beginning, all of one name, and no name is kept where nothing was known before.
func TestBeginningIsSmall(t *testing.T) {
	f := &Follower{}
	var w world
	w.kind(&f.Kind)
	for round, kept := range []int{0, 3000} {
		b := f.begin(&metav1.ListOptions{SendInitialEvents: ptr.To(true)})
		got := map[string]int{}
		for i := range 3000 {
			if o := b.take(watch.Added, &gardencorev1beta1.Shoot{Object: partialmeta.Object{Name: fmt.Sprint(i), ResourceVersion: "1"}}); o != nil {
				got[o.(metav1.Object).GetName()]++
			}
		}
		expect.True(t, len(got) == 1 && got[""] == 3 && len(b.names.hashes) == kept && len(w.known) == 3000,
			"beginning %d: the reflector gets %v, %d names are kept, %d objects are known", round, got, len(b.names.hashes), len(w.known))
	}
}
