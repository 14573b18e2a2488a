package lifecycle

import (
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestInbox_IgnoresFormerRuns: events of a run of a former ManagedResource by this name change nothing.
func TestInbox_IgnoresFormerRuns(t *testing.T) {
	previous, present := Facts{UID: "former"}, Facts{UID: "present"}
	for _, event := range []Event{ObjectsVisited{}, RunSucceeded{}, DeletionsPending{}, RunFailed{}, RunStopped{}} {
		s, _ := Step(State{}, TakenUp{}, present)
		if after, commands := Step(s, event, previous); after.UID != "present" || commands != nil {
			t.Errorf("%T of a former one leaves %+v", event, after)
		}
	}
	s, _ := Step(State{}, TakenUp{}, previous)
	after, _ := Step(s, RunBegins{}, present)
	expect.True(t, after.UID == "present" && after.Replaces, "a run of another one leaves %+v", after)
}
