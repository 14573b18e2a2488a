package endpoint

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Shared registers a collector, or returns the registered one with the same names. If the names have another meaning,
// it panics, as that is a bug.
func Shared[C prometheus.Collector](registry prometheus.Registerer, collector C) C {
	err := registry.Register(collector)
	if known := (prometheus.AlreadyRegisteredError{}); errors.As(err, &known) {
		if existing, same := known.ExistingCollector.(C); same {
			return existing
		}
	}
	if err != nil {
		panic(err)
	}
	return collector
}
