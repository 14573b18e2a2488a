package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/espalier-project/espalier/test/gen/landscape"
)

// crowded is a garden as large as the largest, with 5,000 Shoots in each of two projects.
var crowded = landscape.Options{Seeds: largest.Seeds, Projects: 2, Shoots: largest.Shoots}

// references measures the webhook of audit policies while a ConfigMap among 5,000 Shoots is written 100 times a second.
func references(ctx context.Context, b *bench) error {
	if err := b.startGarden(ctx, crowded); err != nil {
		return err
	}
	g := b.gate
	if err := errors.Join(b.noteVersion(g.garden.REST), g.startUp(ctx)); err != nil {
		return err
	}
	defer g.process.Stop()
	web, err := g.garden.HTTPS()
	if err != nil {
		return err
	}
	namespace, _ := crowded.ShootName(0)
	const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: "
	for _, c := range []struct{ what, name string }{{"that no Shoot refers to", "of-nobody"}, {"that all of them refer to", "audit-policy"}} {
		review, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
			"uid": "u", "kind": map[string]any{"version": "v1", "kind": "ConfigMap"}, "namespace": namespace, "name": c.name, "operation": "UPDATE",
			"object": map[string]any{"data": map[string]any{"policy": policy + "Metadata"}}, "oldObject": map[string]any{"data": map[string]any{"policy": policy + "None"}},
		}})
		if err != nil {
			return err
		}
		var took []time.Duration
		for pace := time.Tick(10 * time.Millisecond); len(took) < 1000; <-pace {
			began := time.Now()
			_, answer, err := g.process.Ask(web, http.MethodPost, "/webhooks/audit-policies", "application/json", review)
			if err != nil {
				return err
			}
			if !strings.Contains(answer, `"allowed":true`) {
				return fmt.Errorf("a ConfigMap %s is refused: %s", c.what, answer)
			}
			took = append(took, time.Since(began))
		}
		g.add(fmt.Sprintf("a ConfigMap among 5,000 Shoots, %s, is changed 100 times a second: p99", c.what), milliseconds(quantile(took, 0.99)), "ms", "≤ 50")
	}
	u, err := usageOf(g.process)
	if err != nil {
		return err
	}
	g.add("memory, peak", u.Peak, "MiB", "≤ 200")
	return nil
}
