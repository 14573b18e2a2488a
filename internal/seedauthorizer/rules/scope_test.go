package rules

import (
	"testing"
	"time"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// The own Seed that the graph has not seen yet is looked up, so that who just created it can read it; one that does not
// exist is not told of.
func TestOwnSeed_IsLookedUp(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	got := decided(w.seeds, ask(t, "gardenlet get seeds seed"))
	expect.True(t, matches(got, "no opinion: no relationship found"), "BH-SA-27, D-1: it does not exist: got %s", got)
	w.live.objects["seeds:/seed"] = objectOf(t, relation.Seed, builders.Seed("seed"))
	for _, question := range []string{"gardenlet get seeds seed", "extension watch seeds seed"} {
		expect.Equal(t, decided(w.seeds, ask(t, question)), "allowed", "BH-SA-27, T3-2: %s", question)
	}
	expect.True(t, decided(w.seeds, ask(t, "gardenlet get seeds other")) != "allowed",
		"BH-SA-27, D-1: another Seed is read")
}

// The garden's namespace and identity, and the own Seed, are read by name always under readScope All, and by path under
// Related, where clients of a seed come by them step by step as a gardenlet does: it lists Seeds by its label and creates its own, waits for
// its namespace, then reads the identity of the garden, and reads namespace garden once it has a Shoot there.
func TestReadScope_DecidesAboutTheGardensObjects(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	stages := []struct {
		name   string
		happen func()
		// open is what is allowed under Related from this stage on.
		open []string
	}{
		{"before the Seed exists", func() {}, nil},
		{"another Seed exists, with a Shoot in garden", func() {
			w.has(t, relation.Seed, builders.Seed("other"))
			w.has(t, relation.Shoot, builders.Shoot("garden", "theirs").OnSeed("other"))
		}, nil},
		{"the Seed exists", func() { w.has(t, relation.Seed, builders.Seed("seed")) },
			[]string{"seeds seed", "namespaces seed-seed/seed-seed", "configmaps kube-system/cluster-identity"}},
		{"it has a Shoot in garden", func() { w.has(t, relation.Shoot, builders.Shoot("garden", "ours").OnSeed("seed")) }, []string{"namespaces garden/garden"}},
	}
	rules := map[string]string{
		"seeds seed": "BH-SA-27, D-1", "configmaps kube-system/cluster-identity": "D-4, GE-36", "namespaces garden/garden": "SP-4, D-3", "namespaces seed-seed/seed-seed": "SR-19",
	}
	open := map[string]bool{}
	for _, stage := range stages {
		stage.happen()
		for _, object := range stage.open {
			open[object] = true
		}
		for object, rule := range rules {
			for _, client := range []string{"gardenlet", "extension"} {
				for _, verb := range []string{"get", "list", "watch"} {
					for _, readAll := range []bool{true, false} {
						w.seeds.ReadAll = readAll
						want := "no opinion: no relationship found"
						if open[object] || readAll && object != "namespaces seed-seed/seed-seed" {
							want = "allowed"
						}
						if got := decided(w.seeds, ask(t, client+" "+verb+" "+object)); !matches(got, want) {
							t.Errorf("%s/%s, reading all %v: %s %s %s: got %s, want %s", rule, stage.name, readAll, client, verb, object, got, want)
						}
					}
				}
			}
		}
		w.seeds.ReadAll = false
		for _, question := range []string{"gardenlet create seeds", "gardenlet list seeds label:name.seed.gardener.cloud/seed=true", "extension watch seeds label:name.seed.gardener.cloud/seed=true"} {
			expect.Equal(t, decided(w.seeds, ask(t, question)), "allowed", "SR-24/%s: %s", stage.name, question)
		}
		for _, question := range []string{"gardenlet patch seeds other", "gardenlet get namespaces seed-other/seed-other", "gardenlet get seeds other", "extension get namespaces kube-system/kube-system"} {
			expect.True(t, decided(w.seeds, ask(t, question)) != "allowed",
				"SR-19, SR-24/%s: %s is allowed", stage.name, question)
		}
	}
}
