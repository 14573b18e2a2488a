package v1alpha1

import (
	"github.com/espalier-project/espalier/internal/externalapi/meta"
	"github.com/espalier-project/espalier/internal/externalapi/wire"
)

// CredentialsBindingMessage is that of CredentialsBinding in Protocol Buffers, as gardener-apiserver has it.
var CredentialsBindingMessage = wire.Message{
	"metadata":       {Number: 1, Of: meta.ObjectMessage},
	"provider":       {Number: 2, Of: wire.Message{"type": {Number: 1}}},
	"credentialsRef": {Number: 3, Of: meta.ReferenceMessage},
}
