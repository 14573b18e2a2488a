package feature

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestMetrics: name, type, labels and help come from what is registered, whoever registers it.
func TestMetrics(t *testing.T) {
	shared := func(r prometheus.Registerer) {
		r.MustRegister(prometheus.NewCounterVec(prometheus.CounterOpts{Name: "reviews_total", Help: "Reviews, by \"code\"."}, []string{"webhook", "code"}))
	}
	all := rows()
	all[0].Metrics = shared
	all[1].Metrics = func(r prometheus.Registerer) {
		shared(r)
		for _, kind := range []string{"a", "b"} {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "contact_seconds", Help: "Silence.", ConstLabels: prometheus.Labels{"kind": kind}}, func() float64 { return 0 }))
		}
	}
	got := Metrics(all, func(r prometheus.Registerer) {
		r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "starts_total", Help: "Starts."}), prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took_seconds", Help: "Time."}))
	})
	want := []Metric{
		{Name: "contact_seconds", Type: "gauge", Labels: []string{"kind"}, Help: "Silence."},
		{Name: "reviews_total", Type: "counter", Labels: []string{"code", "webhook"}, Help: `Reviews, by "code".`},
		{Name: "starts_total", Type: "counter", Help: "Starts."},
		{Name: "took_seconds", Type: "histogram", Help: "Time."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const list = "- `reviews_total{code,webhook}` counter: Reviews, by \"code\".\n- `starts_total` counter: Starts.\n"
	if diff := cmp.Diff(list, MetricsList(got[1:3])); diff != "" {
		t.Error(diff)
	}
}
