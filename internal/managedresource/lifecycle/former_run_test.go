package lifecycle

import "testing"

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
	if after, _ := Step(s, RunBegins{}, present); after.UID != "present" || !after.Replaces {
		t.Errorf("a run of another one leaves %+v", after)
	}
}
