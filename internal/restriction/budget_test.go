package restriction

import (
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestReads: what one creation costs does not depend on how many ManagedSeeds there are (RES-33).
func TestReads(t *testing.T) {
	g := garden{}
	for i := range 300 {
		g[fmt.Sprintf("managedseeds garden/m%d", i)] = fmt.Sprintf("spec: {shoot: {name: m%d}}", i)
		g[fmt.Sprintf("shoots garden/m%d", i)] = "spec: {seedName: other}"
	}
	reader := &counting{garden: g}
	h := &Handler{Reader: reader, Graph: graphOf(t, g), Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
	if response := respond(h.Decide, ask(t, "G CREATE secrets default/foo", "{}")); response.Allowed || response.Result.Code != 403 || reader.reads > 1 {
		t.Errorf("code %d after %d reads", response.Result.Code, reader.reads)
	}
}

// budgets are the reads that clients have left.
type budgets map[string]int

func (b budgets) Allow(client string) bool {
	b[client]--
	return b[client] >= 0
}

// TestBudgets: a client that has used up its budget is told to come again, before anything is read; another one is not held up.
func TestBudgets(t *testing.T) {
	g := garden{"shoots n/s": on("seed")}
	reader := &counting{garden: g}
	b := budgets{clients["G"].Username: 1, clients["E"].Username: 1}
	h := &Handler{Reader: reader, Graph: graphOf(t, g), Budgets: b, Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
	for i, c := range []struct {
		question string
		code     int32
		reads    int
	}{
		{"G CREATE configmaps n/s.ca-cluster", 200, 1},
		{"G CREATE configmaps n/s.ca-cluster", 429, 1},
		{"G CREATE configmaps n/x", 403, 1}, // Refused without a read; whether it exists is not looked up any more.
		{"E CREATE configmaps n/s.ca-cluster", 200, 2},
	} {
		response := respond(h.Decide, ask(t, c.question, "{}"))
		if response.Result.Code != c.code || reader.reads != c.reads {
			t.Errorf("%d: %s: code %d after %d reads, want %d after %d", i, c.question, response.Result.Code, reader.reads, c.code, c.reads)
		}
	}
}
