package process

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/component-base/version"

	"github.com/espalier-project/espalier/internal/endpoint"
)

// Metrics registers and returns the metrics of the process itself, without go_* and process_*. If a collector is
// already registered, it returns that one.
func Metrics(registry prometheus.Registerer) []prometheus.Collector {
	return []prometheus.Collector{unknownKeys(registry), buildInfo(registry)}
}

// unknownKeys registers the number of unknown keys when the configuration file was last read.
func unknownKeys(registry prometheus.Registerer) prometheus.Gauge {
	return endpoint.Shared(registry, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "espalier_config_unknown_keys",
		Help: "Unknown keys of the configuration file.",
	}))
}

// buildInfo registers the build of a process. Alerting rules use it to select this project's processes.
func buildInfo(registry prometheus.Registerer) *prometheus.GaugeVec {
	gauge := endpoint.Shared(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "espalier_build_info",
		Help: "1, with the version as labels.",
	}, []string{"version", "commit", "go_version"}))
	info := version.Get()
	gauge.WithLabelValues(info.GitVersion, info.GitCommit, info.GoVersion).Set(1)
	return gauge
}

// registerOwn registers the metrics of every process: its build, go_* and process_*. The library registers the latter
// two only in processes with controllers, in the same form.
func registerOwn(registry prometheus.Registerer) {
	Metrics(registry)
	endpoint.Shared(registry, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	endpoint.Shared(registry, collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
}
