package resourcemanager

import "github.com/espalier-project/espalier/internal/feature"

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
func one[W any](registration func(feature.Installation) W) func(*configuration, feature.Installation) []W {
	return func(_ *configuration, i feature.Installation) []W { return []W{registration(i)} }
}

// each are the registrations of a webhook that is registered more than once.
func each[W any](registrations func(feature.Installation) []W) func(*configuration, feature.Installation) []W {
	return func(_ *configuration, i feature.Installation) []W { return registrations(i) }
}

// judging are registrations of webhooks about the cluster in which resource-manager runs: a shoot and the virtual
// garden have none of the judged objects, and none of the objects that the webhooks read (DEP-6).
func judging[W any](registrations func() []W) func(*configuration, feature.Installation) []W {
	return func(_ *configuration, i feature.Installation) []W {
		if i.Shoot {
			return nil
		}
		return registrations()
	}
}
