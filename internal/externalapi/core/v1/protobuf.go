package v1

import (
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// The messages in Protocol Buffers, as gardener-apiserver defines them.
var (
	// ControllerDeploymentMessage is the message of ControllerDeployment.
	ControllerDeploymentMessage = protodecode.Message{
		"metadata":  {Number: 1, Of: partialmeta.ObjectMessage},
		"helm":      {Number: 2, Of: protodecode.Message{"ociRepository": {Number: 3, Of: OCIRepositoryMessage}}},
		"resources": {Number: 4, Of: partialmeta.NamedResourceMessage},
	}
	// OCIRepositoryMessage is the message of OCIRepository.
	OCIRepositoryMessage = protodecode.Message{"pullSecretRef": {Number: 5, Of: partialmeta.NameMessage}, "caBundleSecretRef": {Number: 6, Of: partialmeta.NameMessage}}
)
