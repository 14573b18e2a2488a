package kit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/expect"
)

type recorder struct {
	client.Writer
	events []*corev1.Event
	err    error
}

func (r *recorder) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if r.err != nil {
		return r.err
	}
	r.events = append(r.events, object.(*corev1.Event))
	return nil
}

// COM-8: who reports what; a note is not repeated until it changes, its object is well again, or it could not be recorded.
func TestNotes(t *testing.T) {
	r := &recorder{}
	n := NewNotes(r, clocktesting.NewFakePassiveClock(time.Unix(1, 0)), "x-controller")
	node := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "a", UID: "1"}
	notify := func(message string, want int) {
		t.Helper()
		n.Record(t.Context(), node, corev1.EventTypeWarning, "Reason", message)
		expect.Equal(t, len(r.events), want, "events")
	}
	notify("m", 1)
	notify("m", 1)
	notify("other", 2)
	n.Forget(node.UID)
	notify("other", 3)
	r.err = errors.New("no")
	notify("more", 3)
	r.err = nil
	notify("more", 4)
	notify(strings.Repeat("é", 1000), 5)
	if e := r.events[0]; e.Namespace != "default" || e.ReportingController != "x-controller" || e.Action != "Reconcile" || e.InvolvedObject != node || e.Message != "m" || e.Reason != "Reason" || e.Type != "Warning" {
		t.Errorf("got %+v", e)
	}
	e := r.events[4]
	expect.True(t, len(e.Message) <= 1024, "%d bytes", len(e.Message))
}

// COM-8: where others have a hand in the message, one Event a reason, until the object is well again or the reason is another.
func TestNotesOfReasons(t *testing.T) {
	r := &recorder{}
	n := NewNotes(r, clocktesting.NewFakePassiveClock(time.Unix(1, 0)), "x-controller")
	secret := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}
	notify := func(reason, message string, want int) {
		t.Helper()
		n.RecordReason(t.Context(), secret, corev1.EventTypeWarning, reason, message)
		expect.Equal(t, len(r.events), want, "events")
	}
	for i := range 50 {
		notify("Failed", fmt.Sprintf("dial tcp 10.0.0.1:%d: connection refused", i), 1)
	}
	notify("Rejected", "m", 2)
	n.Forget(secret.UID)
	notify("Rejected", "m", 3)
}

// Nodes and Secrets come and go for as long as a process lives: what was told of one that nobody speaks of any more is let go, and what is
// still told is not repeated because of it.
func TestNotesAreBounded(t *testing.T) {
	r, at := &recorder{}, clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	n := NewNotes(r, at, "x-controller")
	lasting := corev1.ObjectReference{Kind: "Node", Name: "lasting", UID: "lasting"}
	for i := range 100_000 {
		n.Record(t.Context(), corev1.ObjectReference{Kind: "Node", Name: "n", UID: types.UID(strconv.Itoa(i))}, corev1.EventTypeNormal, "Ready", "m")
		if i%100 == 0 {
			n.Record(t.Context(), lasting, corev1.EventTypeWarning, "Reason", "m")
		}
		at.SetTime(at.Now().Add(time.Minute))
	}
	kept := len(n.last)
	expect.True(t, kept <= 2*keptNotes+int(keptFor/time.Minute), "%d notes are kept", kept)
	expect.Equal(t, len(r.events), 100_001, "events: what lasts was repeated")
}

// COM-8: an object's name may be as long as that of an Event, which has a number behind it.
func TestNotesOfLongNames(t *testing.T) {
	r := &recorder{}
	n := NewNotes(r, clocktesting.NewFakePassiveClock(time.Unix(1, 0)), "x-controller")
	about := corev1.ObjectReference{Kind: "Secret", Namespace: "a", Name: strings.Repeat("abc.", 63) + "d", UID: "1"}
	n.Record(t.Context(), about, corev1.EventTypeWarning, "Reason", "m")
	if e := r.events[0]; len(validation.IsDNS1123Subdomain(e.Name)) > 0 || e.InvolvedObject != about {
		t.Errorf("%s: %v", e.Name, validation.IsDNS1123Subdomain(e.Name))
	}
}
