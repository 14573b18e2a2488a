package admissioncontroller

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	certificates "sigs.k8s.io/controller-runtime/pkg/certwatcher/metrics"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// doubled is the prefix of the names under which some metrics are exposed a second time. gardener-operator's
// ServiceMonitor keeps only the metrics of admission-controller with this prefix, and those of some libraries
// (ADM-39), which is not enough for alerts.
const doubled = "gardener_admission_controller_"

// registerDoubles registers the metrics for alerts a second time, under names that gardener-operator's ServiceMonitor
// keeps.
func registerDoubles(registry prometheus.Registerer) {
	again := feature.Prefixed(doubled, registry)
	known := prometheus.AlreadyRegisteredError{}
	for _, c := range slices.Concat(process.Metrics(registry), admission.NewMetrics(registry).Collectors(),
		authorization.NewDifferences(registry, clock.RealClock{}).Collectors(), []prometheus.Collector{certificates.ReadCertificateErrors}) {
		if err := again.Register(c); err != nil && !errors.As(err, &known) {
			panic(err) // A name with another meaning is a bug.
		}
	}
}
