package reflector

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// beginning is what a stream begins with: an event for each object that there is, and a bookmark at the end. The objects count as they come,
// beside the reading of those behind them, and the reflector gets their names only; at the end it says which there are, and others are
// gone. So no start waits for more than the last object, and none holds all of them at once.
//
// Its invariant: nothing is taken from a stream after another one, or a list, has been asked for. A stream that was given up may still have an
// event at hand, which is older than what has come since.
type beginning struct {
	f *Follower
	// over is used by whoever reads the stream only.
	over bool
}

// begin is called before a stream or a list is asked for. It returns nil if that has no beginning.
func (f *Follower) begin(options *metav1.ListOptions) *beginning {
	var b *beginning
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		b = &beginning{f: f}
	}
	f.taking.Lock()
	defer f.taking.Unlock()
	f.current = b
	return b
}

// take takes note of an event's object if it belongs to the beginning, and returns what the reflector gets in its place.
func (b *beginning) take(event watch.EventType, object runtime.Object) runtime.Object {
	if b == nil || b.over {
		return object
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object
	}
	if event == watch.Bookmark {
		b.over = accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		return object
	}
	b.f.taking.Lock()
	defer b.f.taking.Unlock()
	if b.f.current != b {
		return object // Nobody waits for it any more.
	}
	switch event {
	case watch.Added, watch.Modified:
		b.f.Set(object)
	case watch.Deleted:
		b.f.Remove(accessor.GetNamespace(), accessor.GetName())
	default:
		return object
	}
	return &taken{namespace: accessor.GetNamespace(), name: accessor.GetName(), version: accessor.GetResourceVersion()}
}

// taken stands for an object that counts already.
type taken struct {
	metav1.Object            // Nobody asks for more than what is here.
	namespace, name, version string
}

// GetNamespace implements metav1.Object.
func (t *taken) GetNamespace() string { return t.namespace }

// GetName implements metav1.Object.
func (t *taken) GetName() string { return t.name }

// GetResourceVersion implements metav1.Object.
func (t *taken) GetResourceVersion() string { return t.version }

// GetAnnotations implements metav1.Object.
func (*taken) GetAnnotations() map[string]string { return nil }

// GetObjectKind implements runtime.Object.
func (*taken) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; nobody changes it.
func (t *taken) DeepCopyObject() runtime.Object { return t }
