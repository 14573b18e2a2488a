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

// The package of a feature declares its reads, writes and registrations as functions of the simplest form. The
// functions below adapt them to a row.

// reads adapts reads that do not depend on the configuration.
func reads(those func() []feature.Read) func(*configuration) []feature.Read {
	return func(*configuration) []feature.Read { return those() }
}

// writes adapts writes that do not depend on the configuration.
func writes(those func() []feature.Write) func(*configuration) []feature.Write {
	return func(*configuration) []feature.Write { return those() }
}

// one adapts the only registration of a webhook.
func one[W any](registration func() W) func(*configuration, feature.Installation) []W {
	return func(*configuration, feature.Installation) []W { return []W{registration()} }
}

// configured adapts registrations that depend on the configuration.
func configured[W any](registrations func(*configuration) []W) func(*configuration, feature.Installation) []W {
	return func(cfg *configuration, _ feature.Installation) []W { return registrations(cfg) }
}

// selectorQuestion returns the write by which authorizers check whether the garden sends selectors.
func selectorQuestion() []feature.Write { return []feature.Write{selectors.Write(feature.Garden)} }

// graphMetrics registers the metrics of a graph and of its watches.
func graphMetrics(registry prometheus.Registerer) {
	garden.NewMetrics(registry, graph.New(relation.Schema), rules.Buckets()).Follow("", func() time.Duration { return 0 })
}
