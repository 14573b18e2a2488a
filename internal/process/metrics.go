package process

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/component-base/version"

	"github.com/espalier-project/espalier/internal/endpoint"
)

// Metrics registers and returns the metrics of a process itself, in addition to go_* and process_*. A collector that is registered already is returned as
// it is.
func Metrics(registry prometheus.Registerer) []prometheus.Collector {
	return []prometheus.Collector{unknownKeys(registry), buildInfo(registry)}
}

// unknownKeys registers the number of unknown keys in the configuration file at its last reading.
func unknownKeys(registry prometheus.Registerer) prometheus.Gauge {
	return endpoint.Shared(registry, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "espalier_config_unknown_keys",
		Help: "Unknown keys of the configuration file.",
	}))
}

// buildInfo registers the build of a process. Rules distinguish our processes from others by it.
func buildInfo(registry prometheus.Registerer) *prometheus.GaugeVec {
	gauge := endpoint.Shared(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "espalier_build_info",
		Help: "1, with the version as labels.",
	}, []string{"version", "commit", "go_version"}))
	info := version.Get()
	gauge.WithLabelValues(info.GitVersion, info.GitCommit, info.GoVersion).Set(1)
	return gauge
}

// registerOwn registers the metrics that every process has of itself: its build, go_* and process_*. The library does so only where there are controllers, and
// then in the same form.
func registerOwn(registry prometheus.Registerer) {
	Metrics(registry)
	endpoint.Shared(registry, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	endpoint.Shared(registry, collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
}
