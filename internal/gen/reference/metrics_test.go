package reference

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
)

// TestMetrics: name, type, labels and help come from what is registered, whoever registers it.
func TestMetrics(t *testing.T) {
	shared := func(r prometheus.Registerer) {
		r.MustRegister(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "reviews_total", Help: "Reviews, by \"code\"."}, []string{"webhook", "code"}))
	}
	x := example()
	x.Rows[0].Metrics = shared
	x.Rows[1].Metrics = func(r prometheus.Registerer) {
		shared(r)
		for _, kind := range []string{"a", "b"} {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "contact_seconds", Help: "Silence.", ConstLabels: prometheus.Labels{"kind": kind}}, func() float64 { return 0 }))
		}
	}
	x.Registers = func(r prometheus.Registerer) {
		r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "starts_total", Help: "Starts."}), prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took_seconds", Help: "Time."}))
		feature.Prefixed("more_", r).MustRegister(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "reviews_total", Help: "Reviews."}, []string{"code"}))
	}
	got := slices.DeleteFunc(Metrics(x), func(m Metric) bool { return strings.HasPrefix(m.Name, "espalier_") })
	want := []Metric{
		{Name: "contact_seconds", Type: "gauge", Labels: []string{"kind"}, Help: "Silence."},
		{Name: "more_reviews_total", Type: "counter", Labels: []string{"code"}, Help: "Reviews.", Prefix: "more_"},
		{Name: "reviews_total", Type: "counter", Labels: []string{"code", "webhook"}, Help: `Reviews, by "code".`},
		{Name: "starts_total", Type: "counter", Help: "Starts."},
		{Name: "took_seconds", Type: "histogram", Help: "Time."},
	}
	expect.DeepEqual(t, got, want)
	const listed = "- `reviews_total{code,webhook}`: Reviews, by \"code\".\n- `starts_total`: Starts.\n"
	expect.DeepEqual(t, list(got[2:4]), listed)
}
