package admission

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/espalier-project/espalier/internal/endpoint"
)

// Metrics are the metrics of all webhooks of a process.
type Metrics struct {
	reviews  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	panics   *prometheus.CounterVec
	reported *prometheus.CounterVec
}

// NewMetrics registers the metrics, or shares the registered ones.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	return &Metrics{
		reviews: endpoint.Shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_admission_reviews_total", Help: "Answers, by the review's code, else the HTTP status.",
		}, []string{"webhook", "code"})),
		duration: endpoint.Shared(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "espalier_admission_review_duration_seconds", Help: "Time from the request, whose body may be under way, to the answer.",
			Buckets: []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10},
		}, []string{"webhook"})),
		reported: endpoint.Shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_admission_only_reported_total",
			Help: "Requests that a webhook of onlyReport admitted instead of refusing them; code 503 if undecided.",
		}, []string{"webhook", "code"})),
		// The library that serves webhooks registers this one in its own registry, and dashboards use it (CW-6).
		panics: endpoint.Shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_panics_total", Help: "Total number of webhook panics",
		}, []string{})),
	}
}

// Collectors returns the metrics whose names are this project's.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.reviews, m.duration, m.reported}
}

// rejectionsKept bounds the series of refusals: a landscape has some thousand projects, but requests may have any
// namespace.
const rejectionsKept = 5000

// other is the label value for namespaces and kinds beyond the limit, and for invalid names.
const other = "<other>"

// Rejections counts refusals of admission-controller's webhooks, for operators who look for misbehaving clients
// (OBS-20).
type Rejections struct {
	count *prometheus.CounterVec

	mu   sync.Mutex
	kept map[[4]string]bool
}

// NewRejections registers the metric, or shares the registered one.
func NewRejections(registry prometheus.Registerer) *Rejections {
	return &Rejections{kept: map[[4]string]bool{}, count: endpoint.Shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gardener_admission_controller_rejected_resources_total", Help: "Refused requests.",
	}, []string{"operation", "kind", "namespace", "reason"}))}
}

// Count counts the refusal of a request. A nil receiver counts nothing.
func (c *Rejections) Count(r *admissionv1.AdmissionRequest, reason string) {
	if c != nil {
		labels := c.labels(r, reason)
		c.count.WithLabelValues(labels[:]...).Inc()
	}
}

// labels returns the labels of the series for a request: other replaces values of a new series beyond the limit.
func (c *Rejections) labels(r *admissionv1.AdmissionRequest, reason string) [4]string {
	const longest = validation.DNS1123SubdomainMaxLength
	labels := [4]string{string(r.Operation), r.Kind.Kind, r.Namespace, reason}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.kept[labels] {
		if len(c.kept) >= rejectionsKept || len(r.Kind.Kind) > longest || len(r.Namespace) > longest {
			return [4]string{string(r.Operation), other, other, reason}
		}
		for i := range labels {
			labels[i] = strings.Clone(labels[i]) // A part of a body would keep the body in memory.
		}
		c.kept[labels] = true
	}
	return labels
}
