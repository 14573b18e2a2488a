package main

import (
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/serve"
	"github.com/espalier-project/espalier/internal/serve/admit"
	"github.com/espalier-project/espalier/internal/webhook/deletionprotection"
	"github.com/espalier-project/espalier/internal/webhook/seccompprofile"
)

// serveWebhooks registers the webhooks that are switched on (IDX-1: no other path is served), on every replica (CW-10).
// The source is read live.
func serveWebhooks(cfg *config.ResourceManagerConfiguration, source client.Reader, register func(path string, hook http.Handler), registry prometheus.Registerer, log logr.Logger) {
	bodies, metrics := serve.NewBodies(admit.CostlyAtOnce), admit.NewMetrics(registry)
	for _, w := range []struct {
		enabled    bool
		name, path string
		decide     admit.Func
	}{
		{cfg.Webhooks.CRDDeletionProtection.Enabled, deletionprotection.Name, deletionprotection.Path, deletionprotection.Decide(source)},
		{cfg.Webhooks.SeccompProfile.Enabled, seccompprofile.Name, seccompprofile.Path, seccompprofile.Decide()},
	} {
		if w.enabled {
			register(w.path, admit.New(admit.Options{Name: w.name, Decide: w.decide, Bodies: bodies, Metrics: metrics, Log: log.WithName("webhook." + w.name)}))
		}
	}
}
