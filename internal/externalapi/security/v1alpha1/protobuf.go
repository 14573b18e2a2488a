package v1alpha1

import (
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// CredentialsBindingMessage is the message of CredentialsBinding in Protocol Buffers, as gardener-apiserver defines
// it.
var CredentialsBindingMessage = protodecode.Message{
	"metadata":       {Number: 1, Of: partialmeta.ObjectMessage},
	"provider":       {Number: 2, Of: protodecode.Message{"type": {Number: 1}}},
	"credentialsRef": {Number: 3, Of: partialmeta.ReferenceMessage},
}
