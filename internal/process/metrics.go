package process

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/component-base/version"
)

// Metrics registers and returns the metrics of a process itself, in addition to go_* and process_*. A collector that is registered already is returned as
// it is.
func Metrics(registry prometheus.Registerer) []prometheus.Collector {
	return []prometheus.Collector{unknownKeys(registry), buildInfo(registry)}
}

// unknownKeys registers the number of unknown keys in the configuration file at its last reading.
func unknownKeys(registry prometheus.Registerer) prometheus.Gauge {
	return registered(registry, prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "espalier_config_unknown_keys",
		Help: "Keys of the configuration file that this version does not know.",
	}))
}

// buildInfo registers the build of a process. Rules distinguish our processes from others by it.
func buildInfo(registry prometheus.Registerer) *prometheus.GaugeVec {
	gauge := registered(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "espalier_build_info",
		Help: "1, with the version and the commit of the executable, and the version of Go that built it.",
	}, []string{"version", "commit", "go_version"}))
	info := version.Get()
	gauge.WithLabelValues(info.GitVersion, info.GitCommit, info.GoVersion).Set(1)
	return gauge
}

// registered registers a collector, or returns the registered one with the same names.
func registered[C prometheus.Collector](registry prometheus.Registerer, collector C) C {
	known := prometheus.AlreadyRegisteredError{}
	if err := registry.Register(collector); errors.As(err, &known) {
		if existing, same := known.ExistingCollector.(C); same {
			return existing
		}
	}
	return collector
}

// registerOwn registers the metrics that every process has of itself: its build, go_* and process_*. The library does so only where there are controllers, and
// then in the same form.
func registerOwn(registry prometheus.Registerer) error {
	Metrics(registry)
	for _, collector := range []prometheus.Collector{
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)),
	} {
		registered := prometheus.AlreadyRegisteredError{}
		if err := registry.Register(collector); err != nil && !errors.As(err, &registered) {
			return err
		}
	}
	return nil
}
