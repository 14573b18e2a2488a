package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/fake"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// The requests that gardenlet's own client may send (gardenlet's default limits).
const (
	gardenletRate  = 100
	gardenletBurst = 130
)

// The seeds of the landscape that play a part.
var honestSeed, hostileSeed = landscape.SeedName(0), landscape.SeedName(1)

// ownShoot is one of the Shoots on a seed.
func (g *gate) ownShoot(seed string, i int) (namespace, name string) {
	var own []int
	for n := range g.Shoots {
		if g.SeedOf(n) == seed {
			own = append(own, n)
		}
	}
	return g.ShootName(own[i%len(own)])
}

// created is a Secret that a gardenlet creates for one of its Shoots.
func (g *gate) created(seed string, i int) []byte {
	namespace, name := g.ownShoot(seed, i)
	o := object{apiVersion: "v1", kind: "Secret", resource: "secrets", namespace: namespace, name: name + ".monitoring", content: fields{"data": fields{"a": base64Of("x")}}}
	return review("CREATE", gardenletOf(seed), seeds, o, nil)
}

// creations: a gardenlet at its own limits is never refused by SeedRestriction, whatever another seed does.
func creations(s *stage) error {
	g, err := s.admissionController(nil)
	if err != nil {
		return err
	}
	err = s.phases(g.process, func(ctx context.Context, t *tally) {
		t.atLimits(ctx, gardenletBurst, gardenletRate, func(ctx context.Context, i int) error {
			return g.admitted(ctx, restriction.SeedPath, g.created(honestSeed, i))
		})
	}, func(ctx context.Context, t *tally) {
		t.together(ctx, 40, func(ctx context.Context, i int) error {
			user, groups := extensionOf(hostileSeed, i%40)
			o := object{apiVersion: "v1", kind: "ConfigMap", resource: "configmaps", namespace: project, name: fmt.Sprintf("invented-%d.ca-cluster", i)}
			return g.admitted(ctx, restriction.SeedPath, review("CREATE", user, groups, o, nil))
		})
	}, 3*time.Second, 5*time.Second)
	s.honestNeverRefused()
	return err
}

// deletions: a gardenlet that deletes what is gone is told so, each time.
func deletions(s *stage) error {
	g, err := s.admissionController(nil)
	if err != nil {
		return err
	}
	var round atomic.Int64
	err = s.phases(g.process, func(ctx context.Context, t *tally) {
		now := round.Add(1)
		t.atLimits(ctx, gardenletBurst, gardenletRate, func(ctx context.Context, i int) error {
			return g.allowed(ctx, rules.SeedPath, access(gardenletOf(honestSeed), seeds, "delete", "", "secrets", project, fmt.Sprintf("gone-%d-%d", now, i)))
		})
	}, func(ctx context.Context, t *tally) {
		t.together(ctx, 40, func(ctx context.Context, i int) error {
			user, groups := extensionOf(hostileSeed, i%40)
			return g.allowed(ctx, rules.SeedPath, access(user, groups, "update", "core.gardener.cloud", "shoots", project, fmt.Sprintf("invented-%d", i)))
		})
	}, 3*time.Second, 5*time.Second)
	s.honestNeverRefused()
	return err
}

// invented: Shoots that do not exist take nothing from those of seeds that do.
func invented(s *stage) error {
	var late atomic.Bool
	g, err := s.admissionController(func(api *harness.Simulated) error {
		api.Late = func(r *fake.Request) time.Duration {
			if late.Load() && r.Resource == "shoots" {
				return time.Hour
			}
			return 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	late.Store(true) // From now on the graph sees no new Shoot, so that each must be looked up.
	const fresh = 300
	for i := range fresh {
		err := g.api.Put("shoots", fields{
			"apiVersion": core, "kind": "Shoot", "metadata": fields{"namespace": project, "name": fmt.Sprintf("fresh-%d", i)}, "spec": fields{"seedName": honestSeed},
		})
		if err != nil {
			return err
		}
	}
	var next atomic.Int64
	err = s.phases(g.process, func(ctx context.Context, t *tally) {
		t.paced(ctx, 100*time.Millisecond, func(ctx context.Context, _ int) error {
			name := fmt.Sprintf("fresh-%d", next.Add(1)%fresh)
			return g.allowed(ctx, rules.SeedPath, access(gardenletOf(honestSeed), seeds, "update", "core.gardener.cloud", "shoots", project, name))
		})
	}, func(ctx context.Context, t *tally) {
		t.together(ctx, 150, func(ctx context.Context, i int) error {
			user := fmt.Sprintf("system:serviceaccount:%s:extension-shoot--invented%d--e", another, i%150)
			groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + another, "system:authenticated"}
			return g.allowed(ctx, rules.ShootPath, access(user, groups, "delete", "", "configmaps", another, fmt.Sprintf("invented-%d", i)))
		})
	}, 2*time.Second, 6*time.Second)
	s.honestNeverRefused()
	return err
}

// honestNeverRefused is the goal of all that has budgets.
func (s *stage) honestNeverRefused() {
	s.goal("honest requests refused, alone", float64(s.before.honest.refused+s.after.honest.refused), 0, "")
	s.goal("honest requests refused, beside hostile clients", float64(s.during.honest.refused), 0, "")
}
