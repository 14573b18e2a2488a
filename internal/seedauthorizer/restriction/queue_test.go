package restriction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/ratelimit/ratelimittest"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
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
	if response := respond(h.Decide, ask(t, "gardenlet CREATE secrets default/foo", "{}")); response.Allowed || response.Result.Code != 403 || len(reader.read) > 1 {
		t.Errorf("code %d after %d reads", response.Result.Code, len(reader.read))
	}
}

// Reads wait by seed and then by user, or by namespace, shoot and user; what waits too long is answered with
// 429 before anything is read, and nothing is read for a Seed or Shoot that is not known.
func TestReads_WaitByClient(t *testing.T) {
	const bucket = "{spec: {shootRef: {namespace: garden, name: s}}}"
	for name, c := range map[string]struct {
		question, object string
		full, unknown    bool
		code             int32
		reads            int
		waits            string
	}{
		"T3-1/seed":                        {question: "gardenlet CREATE configmaps n/s.ca-cluster", code: 200, reads: 1, waits: "Seed:seed | gardener.cloud:system:seed:seed"},
		"T3-1/extension":                   {question: "extension CREATE configmaps n/s.ca-cluster", code: 200, reads: 1, waits: "Seed:seed | system:serviceaccount:seed-seed:extension-provider-local"},
		"T3-1/seed, full":                  {question: "gardenlet CREATE configmaps n/s.ca-cluster", full: true, code: 429, waits: "Seed:seed | gardener.cloud:system:seed:seed"},
		"T3-1/refused without a read":      {question: "gardenlet CREATE configmaps n/x", full: true, code: 403, waits: "Seed:seed | gardener.cloud:system:seed:seed"},
		"T3-1/shoot":                       {question: "shoot-extension CREATE backupentries garden/e", object: bucketOf("s"), code: 200, reads: 1, waits: "garden | Shoot:garden/s | system:serviceaccount:garden:extension-shoot--s--e"},
		"T3-1/shoot, full":                 {question: "shoot-extension CREATE backupentries garden/e", object: bucketOf("s"), full: true, code: 429, waits: "garden | Shoot:garden/s | system:serviceaccount:garden:extension-shoot--s--e"},
		"T3-2/seed that is not known":      {question: "gardenlet CREATE configmaps n/s.ca-cluster", unknown: true, code: 403},
		"T3-2/shoot that is not known":     {question: "shoot-extension CREATE backupentries garden/e", object: bucketOf("s"), unknown: true, code: 403},
		"T3-2/no read, seed is not known":  {question: "gardenlet CREATE configmaps n/x", unknown: true, code: 403},
		"T3-1/no read, so nothing to wait": {question: "shoot-extension CREATE shootstates garden/s", full: true, code: 200},
	} {
		t.Run(name, func(t *testing.T) {
			g := garden{"shoots n/s": on("seed"), "backupbuckets b": bucket}
			reader, queue := &counting{garden: g}, &ratelimittest.Paths{Full: c.full}
			h := &Handler{Reader: reader, Graph: graphOf(t, g), Shoots: shootsOf(t, g), Queue: queue, Clock: clocktesting.NewFakePassiveClock(now), Log: logr.Discard()}
			if c.unknown {
				h.Graph, h.Shoots = graph.New(relation.Schema), graph.New(relation.SelfHostedSchema)
			}
			decide := h.Decide
			if bySelfHostedShoot(c.question) {
				decide = SelfHosted{h}.Decide
			}
			if c.object == "" {
				c.object = "{}"
			}
			response := respond(decide, ask(t, c.question, c.object))
			expect.True(t, response.Result.Code == c.code && len(reader.read) == c.reads,
				"code %d (%s) after %d reads, want %d after %d", response.Result.Code, response.Result.Message, len(reader.read), c.code, c.reads)
			got := strings.Join(queue.Seen, ", ")
			expect.Equal(t, got, c.waits, "the reads of %q wait", got)
		})
	}
}

func bucketOf(shoot string) string {
	return "{spec: {bucketName: b, shootRef: {namespace: garden, name: " + shoot + "}}}"
}
