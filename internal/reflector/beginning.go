package reflector

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// beginning is the first part of a stream: an event for each existing object, and a bookmark at the end. The objects
// are handed over as they arrive, and the reflector gets none of them. At the end Names has the existing objects; all
// others were deleted. So a start waits for nothing after the last object, and never has all objects, or their names,
// in memory at once.
//
// Its invariant: no event is taken from a stream after another stream, or a list, has been requested. A stream that
// was given up may still deliver an event, which is older than later events.
type beginning struct {
	f *Follower
	// over is used only by the reader of the stream.
	over bool
	// names are the objects that have arrived, and events counts the events.
	names  Names
	events int
}

// sampled is the number of events of a beginning for each one that the reflector gets, because the reflector reports
// a stream that delivers nothing for ten seconds.
const sampled = 1024

// begin is called before a stream or a list is requested. The beginning of a resumed stream is already over.
func (f *Follower) begin(options *metav1.ListOptions) *beginning {
	b := &beginning{f: f, over: options.SendInitialEvents == nil || !*options.SendInitialEvents}
	f.taking.Lock()
	defer f.taking.Unlock()
	b.names = newNames(!b.over && !f.begun)
	f.current, f.begun = b, true
	f.watchOver(b)
	if !b.over || !options.Watch {
		f.versions.begin()
	}
	return b
}

// take records an event's object if it belongs to the beginning. It returns the object for the reflector, nil if that
// gets none.
func (b *beginning) take(event watch.EventType, object runtime.Object) runtime.Object {
	if b == nil {
		return object
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object
	}
	begun := b.over
	result := b.count(event, object, accessor)
	if b.over && !begun {
		b.complete(accessor.GetResourceVersion())
	}
	return result
}

func (b *beginning) count(event watch.EventType, object runtime.Object, accessor metav1.Object) runtime.Object {
	b.f.taking.Lock()
	defer b.f.taking.Unlock()
	if b.f.current != b {
		return object // A newer stream or list was requested.
	}
	b.f.versions.saw(event, accessor)
	if event == watch.Bookmark {
		b.over = b.over || accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	}
	if b.over {
		return object
	}
	switch event {
	case watch.Added, watch.Modified:
		b.f.Set(object)
		b.names.add(accessor)
	case watch.Deleted:
		b.f.Remove(accessor.GetNamespace(), accessor.GetName())
		b.names.remove(accessor)
	default:
		return object
	}
	if b.events++; b.f.Bounds != nil && b.events > b.f.Bounds.Pages*pageSize {
		b.f.exceeded(beyond("there are more than %d objects", b.f.Bounds.Pages*pageSize))
	}
	if b.events%sampled != 1 {
		return nil
	}
	return &taken{version: accessor.GetResourceVersion()}
}

// end records that the list of a beginning is complete as of a version.
func (b *beginning) end(version string) {
	b.f.taking.Lock()
	b.over = true
	b.f.taking.Unlock()
	b.complete(version)
}

// taken replaces objects that were already handed over. All have the same name, so that the reflector stores one.
type taken struct {
	metav1.Object // Only the fields below are read.
	version       string
}

// GetNamespace implements metav1.Object.
func (*taken) GetNamespace() string { return "" }

// GetName implements metav1.Object.
func (*taken) GetName() string { return "" }

// GetResourceVersion implements metav1.Object.
func (t *taken) GetResourceVersion() string { return t.version }

// GetAnnotations implements metav1.Object.
func (*taken) GetAnnotations() map[string]string { return nil }

// GetObjectKind implements runtime.Object.
func (*taken) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; no reader changes the object.
func (t *taken) DeepCopyObject() runtime.Object { return t }
