package resourcemanager

import "github.com/espalier-project/espalier/internal/feature"

// The facts of a feature are functions in its folder, of the simplest shape; what is below makes them those of a row.

// reads are the same whatever the configuration says.
func reads(those func() []feature.Read) func(*configuration) []feature.Read {
	return func(*configuration) []feature.Read { return those() }
}

// one is the only registration of a webhook.
func one[W any](registration func(prefix string) W) func(prefix string) []W {
	return func(prefix string) []W { return []W{registration(prefix)} }
}

// same are registrations that do not depend on the deployment's name.
func same[W any](registrations func() []W) func(prefix string) []W {
	return func(string) []W { return registrations() }
}
