package target

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "espalier_target_requests_total",
		Help: "Requests to the target cluster, by verb.",
	}, []string{"verb"})
	watching = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "espalier_target_watches",
		Help: "Watches on the target cluster.",
	})
	missed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "espalier_managedresource_missed_total",
		Help: "Changes of objects that no watch told of and that an audit found, by kind. Each is a lost event or a fault.",
	}, []string{"kind"})
)

func init() { metrics.Registry.MustRegister(requests, watching, missed) }

func count(verb string) { requests.WithLabelValues(verb).Inc() }
