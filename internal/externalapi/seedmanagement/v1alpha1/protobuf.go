package v1alpha1

import (
	gardencorev1 "github.com/espalier-project/espalier/internal/externalapi/core/v1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// The messages in Protocol Buffers, as gardener-apiserver defines them.
var (
	// GardenletMessage is the message of Gardenlet.
	GardenletMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec": {Number: 2, Of: protodecode.Message{
			"deployment": {Number: 1, Of: protodecode.Message{"helm": {Number: 2, Of: protodecode.Message{"ociRepository": {Number: 1, Of: gardencorev1.OCIRepositoryMessage}}}}},
			"config":     {Number: 2},
		}},
	}
	// ManagedSeedMessage is the message of ManagedSeed.
	ManagedSeedMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec": {Number: 2, Of: protodecode.Message{
			"shoot": {Number: 1, Of: partialmeta.NameMessage}, "gardenlet": {Number: 3, Of: protodecode.Message{"config": {Number: 2}, "bootstrap": {Number: 3}}},
		}},
	}
)
