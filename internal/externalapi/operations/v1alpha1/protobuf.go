package v1alpha1

import (
	"github.com/espalier-project/espalier/internal/externalapi/meta"
	"github.com/espalier-project/espalier/internal/externalapi/wire"
)

// BastionMessage is that of Bastion in Protocol Buffers, as gardener-apiserver has it.
var BastionMessage = wire.Message{
	"metadata": {Number: 1, Of: meta.ObjectMessage},
	"spec":     {Number: 2, Of: wire.Message{"shootRef": {Number: 1, Of: meta.NameMessage}, "seedName": {Number: 2}}},
}
