package main

import (
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/serve"
	"github.com/espalier-project/espalier/internal/serve/admit"
	"github.com/espalier-project/espalier/internal/webhook/seccompprofile"
)

// serveWebhooks registers the webhooks that are switched on (IDX-1: no other path is served), on every replica (CW-10).
func serveWebhooks(cfg *config.ResourceManagerConfiguration, register func(path string, hook http.Handler), registry prometheus.Registerer, log logr.Logger) {
	bodies, metrics := serve.NewBodies(admit.CostlyAtOnce), admit.NewMetrics(registry)
	for _, w := range []struct {
		enabled    bool
		name, path string
		decide     admit.Func
	}{
		{cfg.Webhooks.SeccompProfile.Enabled, seccompprofile.Name, seccompprofile.Path, seccompprofile.Decide()},
	} {
		if w.enabled {
			register(w.path, admit.New(admit.Options{Name: w.name, Decide: w.decide, Bodies: bodies, Metrics: metrics, Log: log.WithName("webhook." + w.name)}))
		}
	}
}
