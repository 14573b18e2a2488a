package kit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	tell := func(message string, want int) {
		t.Helper()
		n.Tell(t.Context(), node, corev1.EventTypeWarning, "Reason", message)
		if len(r.events) != want {
			t.Errorf("%d events, want %d", len(r.events), want)
		}
	}
	tell("m", 1)
	tell("m", 1)
	tell("other", 2)
	n.Forget(node.UID)
	tell("other", 3)
	r.err = errors.New("no")
	tell("more", 3)
	r.err = nil
	tell("more", 4)
	tell(strings.Repeat("é", 1000), 5)
	if e := r.events[0]; e.Namespace != "default" || e.ReportingController != "x-controller" || e.Action != "Reconcile" || e.InvolvedObject != node || e.Message != "m" || e.Reason != "Reason" || e.Type != "Warning" {
		t.Errorf("got %+v", e)
	}
	if e := r.events[4]; len(e.Message) > 1024 {
		t.Errorf("%d bytes", len(e.Message))
	}
}
