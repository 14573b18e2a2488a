package resourcemanager

import "github.com/espalier-project/espalier/internal/feature"

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
func one[W any](registration func(feature.Installation) W) func(*configuration, feature.Installation) []W {
	return func(_ *configuration, i feature.Installation) []W { return []W{registration(i)} }
}

// each adapts the registrations of a webhook that is registered more than once.
func each[W any](registrations func(feature.Installation) []W) func(*configuration, feature.Installation) []W {
	return func(_ *configuration, i feature.Installation) []W { return registrations(i) }
}

// judging adapts registrations of webhooks for the cluster in which resource-manager runs: a shoot and the virtual
// garden have neither the validated objects nor the objects that the webhooks read (DEP-6).
func judging[W any](registrations func() []W) func(*configuration, feature.Installation) []W {
	return func(_ *configuration, i feature.Installation) []W {
		if i.Shoot {
			return nil
		}
		return registrations()
	}
}
