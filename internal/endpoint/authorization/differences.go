package authorization

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/endpoint"
)

// Outcome is the decision of a shadow policy, compared with the policy in effect.
type Outcome string

// The outcomes. Undecided means that the shadow policy would need to read an object first: it sends no request.
const (
	Same        Outcome = ""
	WouldRefuse Outcome = "would_refuse"
	WouldAllow  Outcome = "would_allow"
	Undecided   Outcome = "undecided"
)

// Difference is a request for which a shadow policy decides differently.
type Difference struct {
	// Authorizer is the name of the handler, Client the class of the client: gardenlet, extension, gardenadm,
	// node-agent.
	Authorizer, Rule, Client string
	Outcome                  Outcome
}

// samplePeriod is the minimum interval between log lines about the same authorizer, rule, class of client and
// outcome. With ten seconds, each of these, some 40 in a landscape, has at most 360 lines per hour.
const samplePeriod = 10 * time.Second

// Differences counts the different decisions of shadow policies (SHD-2), and logs a sample of the requests (SHD-3).
// Nil counts nothing.
type Differences struct {
	total *prometheus.CounterVec
	clock clock.PassiveClock

	mu      sync.Mutex
	samples map[Difference]*sample
}

// sample is the state of one series.
type sample struct {
	counter prometheus.Counter
	endpoint.Sample
}

// NewDifferences registers the metric, or shares the registered one. Its labels are bounded, as rules and classes of
// clients are fixed.
func NewDifferences(registry prometheus.Registerer, clock clock.PassiveClock) *Differences {
	return &Differences{clock: clock, samples: map[Difference]*sample{}, total: endpoint.Shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "espalier_authorizer_shadow_total",
		Help: "Requests about which the shadow policy decides differently, or cannot decide without a read.",
	}, []string{"authorizer", "rule", "client", "outcome"}))}
}

// Collectors returns the metric.
func (d *Differences) Collectors() []prometheus.Collector { return []prometheus.Collector{d.total} }

// Count counts a difference, and logs it if none of the same series was logged within samplePeriod. The key-value
// pairs describe the request, and have only names.
func (d *Differences) Count(difference Difference, log logr.Logger, reason string, about ...any) {
	if d == nil || difference.Outcome == Same {
		return
	}
	silent, due := d.count(difference)
	if !due || difference.Outcome == Undecided {
		return
	}
	log.WithValues(about...).Info("Shadow policy decides differently", "outcome", difference.Outcome, "rule", difference.Rule, "reason", reason,
		"client", difference.Client, "notLogged", silent)
}

// About returns the key-value pairs of a request.
func About(attributes authorizer.Attributes) []any {
	return []any{
		"user", attributes.GetUser().GetName(), "verb", attributes.GetVerb(), "resource", attributes.GetResource(),
		"subresource", attributes.GetSubresource(), "namespace", attributes.GetNamespace(), "name", attributes.GetName(),
	}
}

// count reports whether a line is due, and how many differences were not logged since the last line.
func (d *Differences) count(difference Difference) (silent int, due bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.samples[difference]
	if s == nil {
		s = &sample{counter: d.total.WithLabelValues(difference.Authorizer, difference.Rule, difference.Client, string(difference.Outcome))}
		d.samples[difference] = s
	}
	s.counter.Inc()
	return s.Due(d.clock.Now(), samplePeriod)
}
