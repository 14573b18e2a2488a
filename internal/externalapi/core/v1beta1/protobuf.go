package v1beta1

import (
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
)

// The messages in Protocol Buffers, as gardener-apiserver defines them. Older versions also send each secretRef;
// newer versions do not reuse its numbers.
var (
	// BackupBucketMessage is the message of BackupBucket.
	BackupBucketMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec": {Number: 2, Of: protodecode.Message{
			"secretRef": {Number: 3, Of: partialmeta.SecretMessage}, "seedName": {Number: 4}, "credentialsRef": {Number: 5, Of: partialmeta.ReferenceMessage},
			"shootRef": {Number: 6, Of: partialmeta.ReferenceMessage},
		}},
		"status": {Number: 3, Of: protodecode.Message{"generatedSecretRef": {Number: 5, Of: partialmeta.SecretMessage}}},
	}
	// BackupEntryMessage is the message of BackupEntry.
	BackupEntryMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec":     {Number: 2, Of: protodecode.Message{"bucketName": {Number: 1}, "seedName": {Number: 2}, "shootRef": {Number: 3, Of: partialmeta.ReferenceMessage}}},
		"status":   {Number: 3, Of: protodecode.Message{"seedName": {Number: 4}}},
	}
	// ControllerInstallationMessage is the message of ControllerInstallation. Each of its references is an
	// ObjectReference.
	ControllerInstallationMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec": {Number: 2, Of: protodecode.Message{
			"registrationRef": {Number: 1, Of: referencedName}, "seedRef": {Number: 2, Of: referencedName}, "deploymentRef": {Number: 3, Of: referencedName},
			"shootRef": {Number: 4, Of: partialmeta.ReferenceMessage},
		}},
	}
	// ProjectMessage is the message of Project.
	ProjectMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec":     {Number: 2, Of: protodecode.Message{"namespace": {Number: 6}}},
	}
	// SecretBindingMessage is the message of SecretBinding.
	SecretBindingMessage = protodecode.Message{
		"metadata":  {Number: 1, Of: partialmeta.ObjectMessage},
		"secretRef": {Number: 2, Of: partialmeta.SecretMessage},
		"provider":  {Number: 4, Of: protodecode.Message{"type": {Number: 1}}},
	}
	// SeedMessage is the message of Seed.
	SeedMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec": {Number: 2, Of: protodecode.Message{
			"backup": {Number: 1, Of: backup}, "dns": {Number: 2, Of: seedDNS}, "secretRef": {Number: 5, Of: partialmeta.SecretMessage},
			"resources": {Number: 12, Of: partialmeta.NamedResourceMessage},
		}},
		"status": {Number: 3, Of: protodecode.Message{"clientCertificateExpirationTimestamp": {Number: 8}}},
	}
	// ShootMessage is the message of Shoot.
	ShootMessage = protodecode.Message{
		"metadata": {Number: 1, Of: partialmeta.ObjectMessage},
		"spec": {Number: 2, Of: protodecode.Message{
			"cloudProfileName": {Number: 2}, "dns": {Number: 3, Of: shootDNS}, "kubernetes": {Number: 6, Of: kubernetes}, "provider": {Number: 10, Of: provider},
			"secretBindingName": {Number: 13}, "seedName": {Number: 14}, "resources": {Number: 16, Of: partialmeta.NamedResourceMessage}, "exposureClassName": {Number: 18},
			"cloudProfile": {Number: 22, Of: protodecode.Message{"kind": {Number: 1}, "name": {Number: 2}}}, "credentialsBindingName": {Number: 23},
		}},
		"status": {Number: 3, Of: protodecode.Message{
			"lastOperation": {Number: 5, Of: protodecode.Message{"state": {Number: 4}, "type": {Number: 5}}}, "seedName": {Number: 9},
			"advertisedAddresses": {Number: 13, Of: protodecode.Message{"name": {Number: 1}, "url": {Number: 2}}},
		}},
	}

	// referencedName is the name in an ObjectReference.
	referencedName = partialmeta.ReferenceMessage.Only("name")

	backup  = protodecode.Message{"secretRef": {Number: 4, Of: partialmeta.SecretMessage}, "credentialsRef": {Number: 5, Of: partialmeta.ReferenceMessage}}
	seedDNS = protodecode.Message{
		"provider": {Number: 2, Of: protodecode.Message{"secretRef": {Number: 2, Of: partialmeta.SecretMessage}, "credentialsRef": {Number: 5, Of: partialmeta.ReferenceMessage}}},
		"internal": {Number: 3, Of: seedDomain}, "defaults": {Number: 4, Of: seedDomain},
	}
	seedDomain = protodecode.Message{"secretRef": {}, "credentialsRef": {Number: 4, Of: partialmeta.ReferenceMessage}}

	shootDNS   = protodecode.Message{"providers": {Number: 2, Of: protodecode.Message{"secretName": {Number: 3}, "credentialsRef": {Number: 6, Of: partialmeta.CrossVersionMessage}}}}
	provider   = protodecode.Message{"workers": {Number: 4, Of: protodecode.Message{"controlPlane": {Number: 24, Of: protodecode.Message{"backup": {Number: 1, Of: backup}}}}}}
	kubernetes = protodecode.Message{"version": {Number: 8}, "kubeAPIServer": {Number: 3, Of: protodecode.Message{
		"admissionPlugins": {Number: 2, Of: protodecode.Message{"kubeconfigSecretName": {Number: 4}}}, "enableAnonymousAuthentication": {Number: 11},
		"serviceAccountConfig":     {Number: 8, Of: protodecode.Message{"issuer": {Number: 1}, "acceptedIssuers": {Number: 5}}},
		"auditConfig":              {Number: 4, Of: protodecode.Message{"auditPolicy": {Number: 1, Of: protodecode.Message{"configMapRef": {Number: 1, Of: referencedName}}}}},
		"structuredAuthentication": {Number: 17, Of: protodecode.Message{"configMapName": {Number: 1}}},
		"structuredAuthorization":  {Number: 18, Of: protodecode.Message{"configMapName": {Number: 1}, "kubeconfigs": {Number: 2, Of: protodecode.Message{"authorizerName": {Number: 1}, "secretName": {Number: 2}}}}},
	}}}
)
