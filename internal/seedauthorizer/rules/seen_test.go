package rules

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// world is both authorizers over graphs that objects are put into.
type world struct {
	seeds, shoots         *Authorizer
	seedState, shootState *relation.State
	live                  *live
}

func newWorld(now time.Time) *world {
	clock := clocktesting.NewFakePassiveClock(now)
	w := &world{live: &live{objects: map[string]runtime.Object{}, exists: map[string]bool{}}}
	w.seedState = relation.NewState(graph.New(relation.Schema), clock, nil)
	w.shootState = relation.NewState(graph.New(relation.SelfHostedSchema), clock, nil)
	options := Options{Graph: w.seedState.Graph, Watches: relation.Watches, Facts: w.seedState.Facts(), Selectors: selectors{possible: true}, Live: w.live, Log: logr.Discard()}
	w.seeds = NewSeedAuthorizer(options)
	options.Graph, options.Watches, options.Facts = w.shootState.Graph, relation.SelfHosted, w.shootState.Facts()
	w.shoots = NewShootAuthorizer(options, w.seeds)
	return w
}

// set lets both graphs see an object.
func (w *world) set(kind graph.Kind, object runtime.Object) {
	if watch := relation.Watches.Of(kind); watch != nil {
		w.seedState.Set(watch, object)
	}
	if watch := relation.SelfHosted.Of(kind); watch != nil {
		w.shootState.Set(watch, object)
	}
}

// has lets both graphs see an object that was built.
func (w *world) has(t *testing.T, kind graph.Kind, o *builders.Object) {
	t.Helper()
	w.set(kind, objectOf(t, kind, o))
}

// objectOf is what the watch of a kind makes of an object.
func objectOf(t *testing.T, kind graph.Kind, o *builders.Object) runtime.Object {
	t.Helper()
	object := relation.WatchOf(kind).New()
	must.Succeed(t, o.Into(object))
	return object
}

// TestParentAndUnseen is B-15 for objects that the graph has not seen: the parent gardenlet gets nothing of the child's by a look-up.
func TestParentAndUnseen(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	w.has(t, relation.Shoot, builders.Shoot("garden", "child-shoot").OnSeed("seed"))
	w.has(t, relation.ManagedSeed, builders.ManagedSeed("garden", "child", "child-shoot"))
	w.live.objects = map[string]runtime.Object{
		"shoots:n/new":                 objectOf(t, relation.Shoot, builders.Shoot("n", "new").OnSeed("child")),
		"backupbuckets:/new":           objectOf(t, relation.BackupBucket, builders.BackupBucket("new").OnSeed("child")),
		"controllerinstallations:/new": objectOf(t, relation.ControllerInstallation, builders.ControllerInstallation("new", "r").With("spec.seedRef.name", "child")),
		"seeds:/child":                 objectOf(t, relation.Seed, builders.Seed("child")),
	}
	for question, want := range map[string]string{
		"gardenlet patch shoots n/new": "no opinion: no relationship found", "gardenlet delete backupbuckets new": "no opinion: no relationship found",
		"gardenlet update controllerinstallations new": "no opinion: no relationship found", "gardenlet patch seeds child": "allowed",
	} {
		got := decided(w.seeds, ask(t, question))
		expect.True(t, matches(got, want), "%s: got %s, want %s", question, got, want)
	}
}

// TestSelfHostedWritesItself: what clients of a self-hosted shoot write into their own Gardenlet and ServiceAccounts opens nothing.
func TestSelfHostedWritesItself(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	w.has(t, relation.Shoot, builders.Shoot("garden-n", "s").SelfHosted())
	w.has(t, relation.ControllerInstallation, builders.ControllerInstallation("e", "r").With("spec.shootRef", builders.At("garden-n/s")))
	w.has(t, relation.Gardenlet, builders.Gardenlet("garden-n", "self-hosted-shoot-s").Pulls("pull", "ca").SeedSpec("backup.credentialsRef", builders.Ref("Secret", "garden/backup")))
	w.has(t, relation.ServiceAccount, builders.ServiceAccount("garden-n", "extension-shoot--s--e", "other"))
	for question, want := range map[string]string{
		"shoot-extension get secrets garden/backup": "no opinion: ", "shoot-extension delete secrets garden/backup": "no opinion: ", "shoot-extension get secrets garden-n/pull": "no opinion: ", "shoot-extension update secrets garden-n/ca": "no opinion: ", "shoot-extension get secrets garden-n/other": "no opinion: ",
		"shoot-extension get serviceaccounts garden-n/extension-shoot--s--e": "allowed", "shoot-extension patch gardenlets garden-n/self-hosted-shoot-s": "allowed",
	} {
		w.live.exists = map[string]bool{"secrets:garden/backup": true}
		got := decided(w.shoots, ask(t, question))
		expect.True(t, matches(got, want), "%s: got %s, want %s", question, got, want)
	}
}

// TestExplainAsksNobody: an explanation makes no request, counts nothing and waits for nobody, also where it is handed on.
func TestExplainAsksNobody(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	registry := prometheus.NewRegistry()
	w.seeds.Metrics = NewMetrics(registry)
	w.shoots.Metrics = w.seeds.Metrics
	w.seeds.Queue, w.shoots.Queue = unused{t}, unused{t}
	w.has(t, relation.Seed, builders.Seed("s"))
	w.has(t, relation.ManagedSeed, builders.ManagedSeed("garden", "s", "s"))
	before := counted(t, registry)
	for _, question := range []string{"garden-extension delete secrets garden/foo", "garden-extension get secrets kube-system/bootstrap-token-abcdef", "shoot-gardenlet delete secrets kube-system/bootstrap-token-abcdef", "shoot-gardenlet list bastions n/"} {
		w.shoots.Explain(context.Background(), ask(t, question))
	}
	for _, question := range []string{"gardenlet delete secrets garden/foo", "gardenlet patch shoots n/new", "gardenlet list shoots", "gardenlet get cloudprofiles x"} {
		w.seeds.Explain(context.Background(), ask(t, question))
	}
	expect.Equal(t, w.live.asked, 0, "look-ups were made")
	expect.Equal(t, counted(t, registry), before, "metrics")
	w.seeds.Selectors = unasked{t}
	expect.Equal(t, w.seeds.Explain(context.Background(), ask(t, "gardenlet list shoots")).Decision, "Error",
		"whether the API server sends selectors is not known")
}

// counted is the sum of everything that was counted.
func counted(t *testing.T, registry *prometheus.Registry) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	must.Succeed(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// unused is a queue that nobody uses.
type unused struct{ t *testing.T }

func (u unused) Do(ctx context.Context, look func(context.Context) error) error {
	u.t.Error("a look-up waits")
	return look(ctx)
}

// unasked fails when it is asked.
type unasked struct{ t *testing.T }

func (s unasked) Possible(context.Context) (bool, error) {
	s.t.Error("the API server is asked")
	return true, nil
}
func (unasked) Known() (bool, bool) { return false, false }
