package admit

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of all webhooks of a process.
type Metrics struct {
	reviews  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	panics   *prometheus.CounterVec
}

// NewMetrics registers metrics, and shares those that the registry has already.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	return &Metrics{
		reviews: shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_admission_reviews_total", Help: "Answers of webhooks by the code in the review, or the HTTP status where there is none.",
		}, []string{"webhook", "code"})),
		duration: shared(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "espalier_admission_review_duration_seconds", Help: "Time from the request to the answer, the body's arrival included.",
			Buckets: []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10},
		}, []string{"webhook"})),
		// The library that serves webhooks registers this one in its own registry, and dashboards know it (CW-6).
		panics: shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_panics_total", Help: "Total number of webhook panics",
		}, []string{})),
	}
}

// shared registers a collector, or returns the one that is registered with the same names. Names that mean something else are an error
// in the program.
func shared[C prometheus.Collector](registry prometheus.Registerer, collector C) C {
	err := registry.Register(collector)
	if known := (prometheus.AlreadyRegisteredError{}); errors.As(err, &known) {
		if existing, same := known.ExistingCollector.(C); same {
			return existing
		}
	}
	if err != nil {
		panic(err)
	}
	return collector
}
