package feature

import "github.com/prometheus/client_golang/prometheus"

// Registers returns a function that registers the metrics of a constructor.
func Registers[M any](construct func(prometheus.Registerer) M) func(prometheus.Registerer) {
	return func(registry prometheus.Registerer) { construct(registry) }
}

// Prefixed returns a registry that registers in another one, with a prefix of names. The reference pages are
// generated with a registry that creates its own.
func Prefixed(prefix string, registry prometheus.Registerer) prometheus.Registerer {
	if r, is := registry.(interface {
		Prefixed(prefix string) prometheus.Registerer
	}); is {
		return r.Prefixed(prefix)
	}
	return prometheus.WrapRegistererWithPrefix(prefix, registry)
}
