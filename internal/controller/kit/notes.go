package kit

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// maxNote is the maximum length of an Event's message, in bytes; the API server refuses longer messages.
const maxNote = 1024

const (
	// keptNotes is the number of notes from which on old ones are removed. keptFor is the lifetime of a note that is
	// not repeated: a lasting problem is noted again within the longest interval between retries (Retries).
	keptNotes = 1000
	keptFor   = 24 * time.Hour
)

// Notes records Events about objects. It only creates Events, as some installations allow nothing else (COM-10).
//
// It remembers the last note about each object until Forget, and does not repeat it: an Event reports a change. Old
// notes of objects that were deleted before their next run are dropped after a while.
type Notes struct {
	writer client.Writer
	clock  clock.PassiveClock
	// component is the reporting controller (COM-8).
	component string

	mu   sync.Mutex
	last map[types.UID]note
	// sweepAt is the number of notes at which old notes are removed.
	sweepAt int
}

// note is the last Event of an object, with its time.
type note struct {
	text string
	at   time.Time
}

// NewNotes returns a recorder of Events in a cluster.
func NewNotes(writer client.Writer, clock clock.PassiveClock, component string) *Notes {
	return &Notes{writer: writer, clock: clock, component: component, last: map[types.UID]note{}, sweepAt: keptNotes}
}

// Record records an Event about an object, unless the object's last Event was the same. A failure to record it is only
// logged.
func (n *Notes) Record(ctx context.Context, about corev1.ObjectReference, eventType, reason, message string) {
	n.record(ctx, about, eventType, reason, message, reason+"\n"+message)
}

// RecordReason is like Record, but compares only the reasons. It is for messages with foreign text, such as errors of
// an API server: the first message is the only one until the object is forgotten.
func (n *Notes) RecordReason(ctx context.Context, about corev1.ObjectReference, eventType, reason, message string) {
	n.record(ctx, about, eventType, reason, message, reason)
}

// record records an Event, unless its text equals the last recorded one.
func (n *Notes) record(ctx context.Context, about corev1.ObjectReference, eventType, reason, message, text string) {
	if !n.isNew(about.UID, text) {
		return
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // Events about cluster-scoped objects are in this namespace.
	}
	now := metav1.NewTime(n.clock.Now())
	err := n.writer.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: meta.EventName(about.Name, now.UnixNano())},
		InvolvedObject: about, Type: eventType, Reason: reason, Message: meta.Shortened(message, maxNote), Action: "Reconcile",
		Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: n.component}, ReportingController: n.component,
	})
	if err != nil {
		n.Forget(about.UID)
		log.FromContext(ctx).V(1).Info("Could not record an event", "reason", err.Error())
	}
}

// Forget drops the last Event of an object that recovered or is gone.
func (n *Notes) Forget(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.last, uid)
}

func (n *Notes) isNew(uid types.UID, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	isNew, now := n.last[uid].text != text, n.clock.Now()
	n.last[uid] = note{text, now}
	if len(n.last) > n.sweepAt {
		maps.DeleteFunc(n.last, func(_ types.UID, kept note) bool { return now.Sub(kept.at) > keptFor })
		n.sweepAt = max(keptNotes, 2*len(n.last)) // Doubling amortizes the cost of a sweep.
	}
	return isNew
}
