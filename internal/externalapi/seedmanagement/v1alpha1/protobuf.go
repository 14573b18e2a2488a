package v1alpha1

import (
	gardencorev1 "github.com/espalier-project/espalier/internal/externalapi/core/v1"
	"github.com/espalier-project/espalier/internal/externalapi/meta"
	"github.com/espalier-project/espalier/internal/externalapi/wire"
)

// Messages in Protocol Buffers, as gardener-apiserver has them.
var (
	// GardenletMessage is that of Gardenlet.
	GardenletMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec": {Number: 2, Of: wire.Message{
			"deployment": {Number: 1, Of: wire.Message{"helm": {Number: 2, Of: wire.Message{"ociRepository": {Number: 1, Of: gardencorev1.OCIRepositoryMessage}}}}},
			"config":     {Number: 2},
		}},
	}
	// ManagedSeedMessage is that of ManagedSeed.
	ManagedSeedMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec": {Number: 2, Of: wire.Message{
			"shoot": {Number: 1, Of: meta.NameMessage}, "gardenlet": {Number: 3, Of: wire.Message{"config": {Number: 2}, "bootstrap": {Number: 3}}},
		}},
	}
)
