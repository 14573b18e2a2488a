package admissioncontroller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/internal/selectors"
)

// The facts of a feature are functions in its folder, of the simplest shape; what is below makes them those of a row.

// reads are the same whatever the configuration says.
func reads(those func() []feature.Read) func(*configuration) []feature.Read {
	return func(*configuration) []feature.Read { return those() }
}

// writes are the same whatever the configuration says.
func writes(those func() []feature.Write) func(*configuration) []feature.Write {
	return func(*configuration) []feature.Write { return those() }
}

// one is the only registration of a webhook.
func one[W any](registration func() W) func(*configuration, feature.Installation) []W {
	return func(*configuration, feature.Installation) []W { return []W{registration()} }
}

// configured are registrations that depend on the configuration.
func configured[W any](registrations func(*configuration) []W) func(*configuration, feature.Installation) []W {
	return func(cfg *configuration, _ feature.Installation) []W { return registrations(cfg) }
}

// selectorQuestion returns the write by which authorizers check whether the garden sends selectors.
func selectorQuestion() []feature.Write { return []feature.Write{selectors.Write(feature.Garden)} }

// graphMetrics registers the metrics of a graph and of its watches.
func graphMetrics(registry prometheus.Registerer) {
	garden.NewMetrics(registry, graph.New(relation.Schema), rules.Buckets()).Follow("", func() time.Duration { return 0 })
}
