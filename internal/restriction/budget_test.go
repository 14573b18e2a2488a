package restriction

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
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

// TestBudgetsTogether: users of one seed or self-hosted shoot, which makes as many as it likes, have one budget together; others do not notice.
func TestBudgetsTogether(t *testing.T) {
	bucket := func(shoot string) string { return "{spec: {shootRef: {namespace: garden, name: " + shoot + "}}}" }
	entry := "{spec: {bucketName: b, shootRef: {namespace: garden, name: %s}}}"
	g := garden{"shoots n/s": on("seed"), "backupbuckets b": bucket("s")}
	reader := &counting{garden: g}
	h := &Handler{Reader: reader, Graph: graphOf(t, g), Together: budgets{"Seed:seed": 3, "Seed:other": 1, "Shoot:garden/s": 3, "Shoot:garden/t": 1}, Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
	last := func(decide func(context.Context, *admissionv1.AdmissionRequest) error, question, object, namespace, account string, times int) (code int32) {
		for i := range times {
			r := ask(t, question, object)
			r.UserInfo = authenticationv1.UserInfo{
				Username: fmt.Sprintf("system:serviceaccount:%s:%s%d", namespace, account, i), Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
			}
			code = respond(decide, r).Result.Code
		}
		return code
	}
	const created, own = "G CREATE configmaps n/s.ca-cluster", "SE CREATE backupentries garden/e"
	if code := last(h.Decide, created, "{}", "seed-seed", "extension-", 4); code != 429 || reader.reads != 3 {
		t.Errorf("four users of a seed: code %d after %d reads", code, reader.reads)
	}
	if code := last(h.Decide, created, "{}", "seed-other", "extension-", 1); code != 403 {
		t.Errorf("another seed: code %d", code)
	}
	reader.reads = 0
	shoots := SelfHosted{h}
	if code := last(shoots.Decide, own, fmt.Sprintf(entry, "s"), "garden", "extension-shoot--s--", 4); code != 429 || reader.reads != 3 {
		t.Errorf("four users of a shoot: code %d after %d reads", code, reader.reads)
	}
	if code := last(shoots.Decide, own, fmt.Sprintf(entry, "t"), "garden", "extension-shoot--t--", 1); code != 403 {
		t.Errorf("another shoot: code %d", code)
	}
}
