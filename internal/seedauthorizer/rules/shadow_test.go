package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/gen/gardengen"
	"github.com/espalier-project/espalier/test/must"
)

// shadowing is an authorizer with the widest policy, and with the narrowest one as its shadow.
func shadowing() *Authorizer {
	a := ruled()
	a.ReadAll, a.Shadow = true, &Policy{WriteOwned: true}
	return a
}

// TestShadow: what the shadow policy decides differently, by the rule that asks about the policy; everything else is decided once.
func TestShadow(t *testing.T) {
	for name, c := range map[string]struct {
		question string
		want     authorization.Outcome
		step     string
		asked    bool
	}{
		"SHD-1/D-1 a Shoot of another seed":      {"gardenlet get shoots n/foreign", authorization.WouldRefuse, "SA-14", true},
		"SHD-1/D-1 the own Shoot":                {"gardenlet get shoots n/own", authorization.Same, "SA-13", true},
		"SHD-1/D-1 a list without a selector":    {"gardenlet list shoots", authorization.WouldRefuse, "SEL-2", true},
		"SHD-1/D-2 another namespace":            {"gardenlet list gardenlets other/", authorization.WouldRefuse, "SA-5", true},
		"SHD-1/SP-3b the Lease of an election":   {"gardenlet get leases x/gardenlet-leader-election", authorization.WouldRefuse, "SA-14", true},
		"SHD-1/SP-4 Namespace garden":            {"gardenlet get namespaces garden", authorization.WouldRefuse, "SA-14", true},
		"SHD-1/D-4 the garden's identity":        {"extension get configmaps kube-system/cluster-identity", authorization.WouldRefuse, "SA-14", true},
		"SHD-1/BH-SA-27 the own Seed, which is":  {"gardenlet get seeds seed", authorization.Same, "SA-13", true},
		"SHD-1/B-6 a Secret that is referred to": {"gardenlet update secrets n/own", authorization.WouldRefuse, "B-6", true},
		"SHD-1/B-6 not for reads":                {"gardenlet get secrets n/own", authorization.Same, "", false},
		"SHD-1/no question about the policy":     {"gardenlet get cloudprofiles own", authorization.Same, "", false},
		"SHD-1/a refusal of both":                {"gardenlet update secrets n/foreign", authorization.Same, "", false},
		"SHD-1/an object that is not seen yet":   {"gardenlet get shoots n/unseen", authorization.Undecided, "SA-14", true},
	} {
		t.Run(name, func(t *testing.T) {
			a := shadowing()
			v, err := a.decide(t.Context(), ask(t, c.question), asking{live: true, counted: true})
			must.Succeed(t, err)
			if v.shadow.outcome != c.want || v.shadow.asked != c.asked || c.asked && v.shadow.step != c.step {
				t.Errorf("got %+v, want %q at %s", v.shadow, c.want, c.step)
			}
			if asked := a.Live.(*live).asked; c.asked && asked != 0 {
				t.Errorf("SHD-1: %d reads", asked)
			}
		})
	}
}

// TestShadowWider: a shadow policy may also be the wider one.
func TestShadowWider(t *testing.T) {
	a := ruled()
	a.WriteOwned, a.Shadow = true, &Policy{ReadAll: true}
	for _, question := range []string{"gardenlet get shoots n/foreign", "gardenlet update secrets n/own"} {
		v, err := a.decide(t.Context(), ask(t, question), asking{})
		expect.True(t, err == nil && !v.allowed && v.shadow.outcome == authorization.WouldAllow,
			"SHD-1: %s: got %+v, %v", question, v, err)
	}
}

// TestShadowOfLookedUp: an object that was looked up is judged by both policies, with one read.
func TestShadowOfLookedUp(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	w.has(t, relation.Seed, builders.Seed("seed"))
	w.live.objects["shoots:n/new"] = objectOf(t, relation.Shoot, builders.Shoot("n", "new").OnSeed("seed"))
	w.seeds.Shadow = &Policy{ReadAll: true, WriteOwned: true}
	v, err := w.seeds.decide(t.Context(), ask(t, "gardenlet get shoots n/new"), asking{live: true})
	expect.True(t, err == nil && v.allowed && v.shadow.outcome == authorization.Same && w.live.asked == 1,
		"SHD-1: got %+v, %v, %d reads", v, err, w.live.asked)
}

// TestPropertyOfShadow: on drawn gardens, whatever is asked by whomever, the shadow policy says what an authorizer with this policy says, or that it is
// undecided where that one refuses; and the answer is the one that is given without a shadow policy.
func TestPropertyOfShadow(t *testing.T) {
	compared, different := 0, 0
	for seed := range property(40) {
		g := gardengen.New(2_000_000 + seed)
		objects := draw(g, 5+g.IntN(20))
		policy := Policy{g.IntN(2) == 0, g.IntN(2) == 0}
		shadow := Policy{!policy.ReadAll, policy.WriteOwned != (g.IntN(2) == 0)}
		both, alone, second := newWorld(gardengen.Now), newWorld(gardengen.Now), newWorld(gardengen.Now)
		for _, w := range []*world{both, alone, second} {
			w.populate(objects)
			w.seeds.Live, w.shoots.Live = nil, nil
			of := policy
			if w == second {
				of = shadow
			}
			w.seeds.ReadAll, w.seeds.WriteOwned, w.shoots.ReadAll = of.ReadAll, of.WriteOwned, of.ReadAll
		}
		both.seeds.Shadow, both.shoots.Shadow = &shadow, &Policy{ReadAll: shadow.ReadAll}
		for range reviewsPerGarden {
			q := review(g, objects)
			for _, of := range []func(*world) *Authorizer{func(w *world) *Authorizer { return w.seeds }, func(w *world) *Authorizer { return w.shoots }} {
				v, err := of(both).decide(t.Context(), q, asking{})
				first, _ := of(alone).decide(t.Context(), q, asking{})
				other, _ := of(second).decide(t.Context(), q, asking{})
				if err != nil || v.allowed != first.allowed || v.reason != first.reason {
					t.Fatalf("SHD-1, seed %d: %+v by %s: got %+v, %v with a shadow policy, and %+v without", seed, q, q.User.GetName(), v, err, first)
				}
				said := v.allowed
				if v.shadow.asked {
					compared++
					said = v.shadow.allowed
				}
				delegatedToSeeds := v.step == "SH-23" || other.step == "SH-23"
				if said != other.allowed && !delegatedToSeeds {
					t.Fatalf("SHD-1, seed %d: %+v by %s: shadow says %v of %+v, and an authorizer with %+v says %+v", seed, q, q.User.GetName(), said, v, shadow, other)
				}
				if v.shadow.outcome != authorization.Same {
					different++
				}
			}
		}
	}
	t.Logf("%d compared, %d different", compared, different)
	expect.True(t, compared >= 300 && different >= 200, "the reviews say little")
}

// TestShadowCounted: differences are counted by rule, class of client and outcome, and one line a series and ten seconds is logged.
func TestShadowCounted(t *testing.T) {
	var lines []string
	a, clock, registry := shadowing(), clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), prometheus.NewRegistry()
	a.Log = funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	a.Differences, a.Metrics = authorization.NewDifferences(registry, clock), NewMetrics(prometheus.NewRegistry())
	for range 3 {
		decided(a, ask(t, "gardenlet get shoots n/foreign"))
	}
	decided(a, ask(t, "extension get shoots n/foreign"))
	decided(a, ask(t, "gardenlet get shoots n/unseen"))
	decided(a, ask(t, "gardenlet get shoots n/own"))
	a.Explain(t.Context(), ask(t, "gardenlet get shoots n/foreign"))
	want := map[string]float64{"seedauthorizer SR-26 extension would_refuse": 1, "seedauthorizer SR-26 gardenlet undecided": 1, "seedauthorizer SR-26 gardenlet would_refuse": 3}
	expect.DeepEqual(t, shadowSeries(t, registry), want, "SHD-2")
	expect.Equal(t, len(lines), 2, "SHD-3: got %d lines: %q", len(lines), lines)
	clock.SetTime(clock.Now().Add(10 * time.Second))
	decided(a, ask(t, "gardenlet get shoots n/foreign"))
	if last := lines[len(lines)-1]; len(lines) != 3 || !strings.Contains(last, `"notLogged"=2`) || !strings.Contains(last, `"rule"="SR-26"`) ||
		!strings.Contains(last, "does not lead to") || !strings.Contains(last, `"name"="foreign"`) {
		t.Errorf("SHD-3: got %q", lines)
	}
}

// shadowSeries are the values of the metric, by its labels.
func shadowSeries(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must.Succeed(t, err)
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "espalier_authorizer_shadow_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			got[strings.Join([]string{labels["authorizer"], labels["rule"], labels["client"], labels["outcome"]}, " ")] = m.GetCounter().GetValue()
		}
	}
	return got
}

// TestShadowExplained: an explanation says what both policies decide.
func TestShadowExplained(t *testing.T) {
	a := shadowing()
	for question, want := range map[string]ShadowDecision{
		"gardenlet get shoots n/foreign":  {Decision: "NoOpinion", Step: "SA-14", Differs: true, Reason: "no relationship found: Shoot:n/foreign does not lead to Seed:seed (SR-26)"},
		"gardenlet get shoots n/unseen":   {Decision: "Undecided", Step: "SA-14", Reason: "no relationship found: Shoot:n/unseen is not known to lead to Seed:seed (SR-26)"},
		"gardenlet get cloudprofiles own": {Decision: "Allow", Step: "SA-13"},
	} {
		got := a.Explain(t.Context(), ask(t, question)).Shadow
		expect.True(t, got != nil && *got == want, "SHD-4: %s: got %+v, want %+v", question, got, want)
	}
	got := a.Explain(t.Context(), ask(t, "other get shoots n/own")).Shadow
	expect.True(t, got == nil, "SHD-4: %+v is said of a user who is no client", got)
	a.Shadow = nil
	if got := a.Explain(t.Context(), ask(t, "gardenlet get shoots n/foreign")).Shadow; got != nil {
		t.Errorf("SHD-4: %+v is said without a shadow policy", got)
	}
}
