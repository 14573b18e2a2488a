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

// doubled is the prefix of the names under which metrics are shown once more. gardener-operator's ServiceMonitor keeps
// only the metrics of admission-controller with this prefix, and those of some libraries (ADM-39): alerts need more
// than that.
const doubled = "gardener_admission_controller_"

// registerDoubles registers the metrics that alerts need and gardener-operator's ServiceMonitor drops once more, under names that it keeps.
func registerDoubles(registry prometheus.Registerer) {
	again := feature.Prefixed(doubled, registry)
	known := prometheus.AlreadyRegisteredError{}
	for _, c := range slices.Concat(process.Metrics(registry), admission.NewMetrics(registry).Collectors(),
		authorization.NewDifferences(registry, clock.RealClock{}).Collectors(), []prometheus.Collector{certificates.ReadCertificateErrors}) {
		if err := again.Register(c); err != nil && !errors.As(err, &known) {
			panic(err) // Names that mean something else are an error in the program.
		}
	}
}
