package v1alpha1

import (
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// BastionMessage is the message of Bastion in Protocol Buffers, as gardener-apiserver defines it.
var BastionMessage = protodecode.Message{
	"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
	"spec":     {Number: 2, Of: protodecode.Message{"shootRef": {Number: 1, Of: partialmeta.NameMessage}, "seedName": {Number: 2}}},
}
