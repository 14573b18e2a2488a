package admissioncontroller

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	authorizer "github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// operatorKeeps is what gardener-operator's ServiceMonitor of admission-controller keeps (ADM-39).
var operatorKeeps = regexp.MustCompile(`^(gardener_admission_controller_.+|rest_client_.+|controller_runtime_.+|go_.+)$`)

// TestDoubles: metrics of the process and of its webhooks have each a name that gardener-operator's ServiceMonitor keeps, with the same value.
func TestDoubles(t *testing.T) {
	registry := prometheus.NewRegistry()
	process.Metrics(registry)
	hooks := admission.NewMetrics(registry)
	registerDoubles(registry)
	registerDoubles(registry) // A second process in a test.
	for _, c := range hooks.Collectors() {
		switch c := c.(type) {
		case *prometheus.CounterVec:
			c.WithLabelValues("w", "500").Add(3)
		case *prometheus.HistogramVec:
			c.WithLabelValues("w").Observe(0.02)
		}
	}
	families, err := registry.Gather()
	must.Succeed(t, err)
	values, kept := map[string]string{}, 0
	for _, family := range families {
		values[family.GetName()] = family.GetMetric()[0].String()
		if operatorKeeps.MatchString(family.GetName()) {
			kept++
		}
	}
	for _, name := range []string{"espalier_build_info", "espalier_config_unknown_keys", "espalier_admission_reviews_total", "espalier_admission_review_duration_seconds"} {
		expect.True(t, values[name] != "" && values[doubled+name] == values[name],
			"ADM-39/%s is %q, and %q under the other name", name, values[name], values[doubled+name])
	}
	_, found := values[doubled+"certwatcher_read_certificate_errors_total"]
	expect.True(t, found && kept >= 5, "ADM-39/%d families are kept of %v", kept, values)
}

// TestBucketsOfObjectives: the histograms that the objectives of deploy/monitoring/rules are about have a bucket that ends where the objective does.
func TestBucketsOfObjectives(t *testing.T) {
	lags := prometheus.NewRegistry()
	garden.NewMetrics(lags, graph.New(relation.Schema), authorizer.Buckets()).Lag("kind", 0)
	server := webhook.NewServer(webhook.Options{WebhookMux: http.NewServeMux()})
	server.Register("/webhooks/auth/objectives", http.NotFoundHandler())
	server.WebhookMux().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/webhooks/auth/objectives", nil))
	for name, c := range map[string]struct {
		registry prometheus.Gatherer
		le       float64
	}{
		"gardener_admission_controller_seed_authorizer_graph_lag_seconds": {lags, 5},
		"controller_runtime_webhook_latency_seconds":                      {metrics.Registry, 0.01},
	} {
		families, err := c.registry.Gather()
		must.Succeed(t, err)
		found := false
		for _, family := range families {
			if family.GetName() == name {
				for _, bucket := range family.GetMetric()[0].GetHistogram().GetBucket() {
					found = found || bucket.GetUpperBound() == c.le
				}
			}
		}
		expect.True(t, found, "%s has no bucket that ends at %v", name, c.le)
	}
}
