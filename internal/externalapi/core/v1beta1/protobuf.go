package v1beta1

import (
	"github.com/espalier-project/espalier/internal/externalapi/meta"
	"github.com/espalier-project/espalier/internal/externalapi/wire"
)

// Messages in Protocol Buffers, as gardener-apiserver has them. Older versions of it also send each secretRef, whose numbers no newer one uses again.
var (
	// BackupBucketMessage is that of BackupBucket.
	BackupBucketMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec": {Number: 2, Of: wire.Message{
			"secretRef": {Number: 3, Of: meta.SecretMessage}, "seedName": {Number: 4}, "credentialsRef": {Number: 5, Of: meta.ReferenceMessage},
			"shootRef": {Number: 6, Of: meta.ReferenceMessage},
		}},
		"status": {Number: 3, Of: wire.Message{"generatedSecretRef": {Number: 5, Of: meta.SecretMessage}}},
	}
	// BackupEntryMessage is that of BackupEntry.
	BackupEntryMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec":     {Number: 2, Of: wire.Message{"bucketName": {Number: 1}, "seedName": {Number: 2}, "shootRef": {Number: 3, Of: meta.ReferenceMessage}}},
		"status":   {Number: 3, Of: wire.Message{"seedName": {Number: 4}}},
	}
	// ControllerInstallationMessage is that of ControllerInstallation. Each of its references is an ObjectReference.
	ControllerInstallationMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec": {Number: 2, Of: wire.Message{
			"registrationRef": {Number: 1, Of: referencedName}, "seedRef": {Number: 2, Of: referencedName}, "deploymentRef": {Number: 3, Of: referencedName},
			"shootRef": {Number: 4, Of: meta.ReferenceMessage},
		}},
	}
	// ProjectMessage is that of Project.
	ProjectMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec":     {Number: 2, Of: wire.Message{"namespace": {Number: 6}}},
	}
	// SecretBindingMessage is that of SecretBinding.
	SecretBindingMessage = wire.Message{
		"metadata":  {Number: 1, Of: meta.ObjectMessage},
		"secretRef": {Number: 2, Of: meta.SecretMessage},
		"provider":  {Number: 4, Of: wire.Message{"type": {Number: 1}}},
	}
	// SeedMessage is that of Seed.
	SeedMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec": {Number: 2, Of: wire.Message{
			"backup": {Number: 1, Of: backup}, "dns": {Number: 2, Of: seedDNS}, "secretRef": {Number: 5, Of: meta.SecretMessage},
			"resources": {Number: 12, Of: meta.NamedResourceMessage},
		}},
		"status": {Number: 3, Of: wire.Message{"clientCertificateExpirationTimestamp": {Number: 8}}},
	}
	// ShootMessage is that of Shoot.
	ShootMessage = wire.Message{
		"metadata": {Number: 1, Of: meta.ObjectMessage},
		"spec": {Number: 2, Of: wire.Message{
			"cloudProfileName": {Number: 2}, "dns": {Number: 3, Of: shootDNS}, "kubernetes": {Number: 6, Of: kubernetes}, "provider": {Number: 10, Of: provider},
			"secretBindingName": {Number: 13}, "seedName": {Number: 14}, "resources": {Number: 16, Of: meta.NamedResourceMessage}, "exposureClassName": {Number: 18},
			"cloudProfile": {Number: 22, Of: wire.Message{"kind": {Number: 1}, "name": {Number: 2}}}, "credentialsBindingName": {Number: 23},
		}},
		"status": {Number: 3, Of: wire.Message{
			"lastOperation": {Number: 5, Of: wire.Message{"state": {Number: 4}, "type": {Number: 5}}}, "seedName": {Number: 9},
			"advertisedAddresses": {Number: 13, Of: wire.Message{"name": {Number: 1}, "url": {Number: 2}}},
		}},
	}

	// referencedName is the name in an ObjectReference.
	referencedName = meta.ReferenceMessage.Only("name")

	backup  = wire.Message{"secretRef": {Number: 4, Of: meta.SecretMessage}, "credentialsRef": {Number: 5, Of: meta.ReferenceMessage}}
	seedDNS = wire.Message{
		"provider": {Number: 2, Of: wire.Message{"secretRef": {Number: 2, Of: meta.SecretMessage}, "credentialsRef": {Number: 5, Of: meta.ReferenceMessage}}},
		"internal": {Number: 3, Of: seedDomain}, "defaults": {Number: 4, Of: seedDomain},
	}
	seedDomain = wire.Message{"secretRef": {}, "credentialsRef": {Number: 4, Of: meta.ReferenceMessage}}

	shootDNS   = wire.Message{"providers": {Number: 2, Of: wire.Message{"secretName": {Number: 3}, "credentialsRef": {Number: 6, Of: meta.CrossVersionMessage}}}}
	provider   = wire.Message{"workers": {Number: 4, Of: wire.Message{"controlPlane": {Number: 24, Of: wire.Message{"backup": {Number: 1, Of: backup}}}}}}
	kubernetes = wire.Message{"version": {Number: 8}, "kubeAPIServer": {Number: 3, Of: wire.Message{
		"admissionPlugins": {Number: 2, Of: wire.Message{"kubeconfigSecretName": {Number: 4}}}, "enableAnonymousAuthentication": {Number: 11},
		"serviceAccountConfig":     {Number: 8, Of: wire.Message{"issuer": {Number: 1}, "acceptedIssuers": {Number: 5}}},
		"auditConfig":              {Number: 4, Of: wire.Message{"auditPolicy": {Number: 1, Of: wire.Message{"configMapRef": {Number: 1, Of: referencedName}}}}},
		"structuredAuthentication": {Number: 17, Of: wire.Message{"configMapName": {Number: 1}}},
		"structuredAuthorization":  {Number: 18, Of: wire.Message{"configMapName": {Number: 1}, "kubeconfigs": {Number: 2, Of: wire.Message{"authorizerName": {Number: 1}, "secretName": {Number: 2}}}}},
	}}}
)
