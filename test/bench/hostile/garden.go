package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/espalier-project/espalier/internal/webhook/kubeconfigsecret"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// few is a landscape in which the clients, not the graph, are what costs.
var few = landscape.Options{Seeds: 4, Projects: 4, Shoots: 40}

// Names in the garden: two namespaces of projects, and a ConfigMap with an audit policy in the first.
const (
	project = "garden-p000"
	another = "garden-p001"
	policy  = "audit-policy"
)

// gate is an admission-controller in a garden, and the connection of the garden's kube-apiserver to it.
type gate struct {
	*connection
	landscape.Options
	api     *harness.Simulated
	process *harness.Process
}

// admissionController starts a garden with an admission-controller that is ready. prepare, if it is set, is called before that.
func (s *stage) admissionController(prepare func(*harness.Simulated) error) (*gate, error) {
	authority := filepath.Join(s.dir, "garden")
	world, api, err := harness.StartSimulatedGarden(authority, few)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, api.Stop)
	if err := api.Put("configmaps", fields{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"namespace": project, "name": policy}, "data": fields{"policy": goodPolicy},
	}); err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := prepare(api); err != nil {
			return nil, err
		}
	}
	process, err := world.Run(harness.GardenProcessOptions{
		Binary: filepath.Join(s.bin, "admission-controller"), Dir: filepath.Join(s.dir, "process"), AsAdmin: true,
	})
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, process.Kill)
	if err := process.AwaitReady(s.ctx); err != nil {
		return nil, err
	}
	c, err := connect(process, authority)
	if err != nil {
		return nil, err
	}
	return &gate{c, few, api, process}, nil
}

const goodPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"

// small is a review of a Secret, which costs next to nothing.
func (g *gate) small() ask {
	body := secret(another, "small", fields{"data": fields{"token": base64Of("x")}})
	return func(ctx context.Context, _ int) error { return g.admitted(ctx, kubeconfigsecret.Path, body) }
}

// smallReviews are such reviews, 100 a second.
func (g *gate) smallReviews() client {
	question := g.small()
	return func(ctx context.Context, t *tally) { t.paced(ctx, 10*time.Millisecond, question) }
}

const seedsGroup = "gardener.cloud:system:seeds"

var seeds = []string{seedsGroup, "system:authenticated"}

func gardenletOf(seed string) string { return "gardener.cloud:system:seed:" + seed }

// extensionOf is one of the ServiceAccounts of a seed, of which its gardenlet makes as many as it likes.
func extensionOf(seed string, i int) (user string, groups []string) {
	namespace := "seed-" + seed
	return fmt.Sprintf("system:serviceaccount:%s:extension-%d", namespace, i), []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}
