package v1

import (
	"github.com/espalier-project/espalier/internal/externalapi/meta"
	"github.com/espalier-project/espalier/internal/externalapi/wire"
)

// Messages in Protocol Buffers, as gardener-apiserver has them.
var (
	// ControllerDeploymentMessage is that of ControllerDeployment.
	ControllerDeploymentMessage = wire.Message{
		"metadata":  {Number: 1, Of: meta.ObjectMessage},
		"helm":      {Number: 2, Of: wire.Message{"ociRepository": {Number: 3, Of: OCIRepositoryMessage}}},
		"resources": {Number: 4, Of: meta.NamedResourceMessage},
	}
	// OCIRepositoryMessage is that of OCIRepository.
	OCIRepositoryMessage = wire.Message{"pullSecretRef": {Number: 5, Of: meta.NameMessage}, "caBundleSecretRef": {Number: 6, Of: meta.NameMessage}}
)
