package relation

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	gardencorev1 "github.com/espalier-project/espalier/internal/externalapi/core/v1"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	operationsv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/operations/v1alpha1"
	securityv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/security/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
)

var backupBuckets = watch(watchOptions[gardencorev1beta1.BackupBucket]{
	kind: BackupBucket, resource: gardencorev1beta1.Resource("backupbuckets"), message: gardencorev1beta1.BackupBucketMessage,
	identify: func(b *gardencorev1beta1.BackupBucket) (string, string) { return "", b.Name },
}, []row[gardencorev1beta1.BackupBucket]{
	{Row{ID: "GE-1", From: credentials, To: kinds(BackupBucket), Fields: []string{"spec.credentialsRef", "spec.secretRef"}},
		func(b *gardencorev1beta1.BackupBucket, add *collector) {
			add.credentials(b.Spec.CredentialsRef, b.Spec.SecretRef)
		}},
	{Row{ID: "GE-2", From: kinds(BackupBucket), To: kinds(Seed), Fields: []string{"spec.seedName"}},
		func(b *gardencorev1beta1.BackupBucket, add *collector) { add.to(Seed, "", deref(b.Spec.SeedName)) }},
	{Row{ID: "GE-3", From: kinds(Secret), To: kinds(BackupBucket), Fields: []string{"status.generatedSecretRef"}, Class: graph.Manages},
		func(b *gardencorev1beta1.BackupBucket, add *collector) {
			if ref := b.Status.GeneratedSecretRef; ref != nil {
				add.from(Secret, ref.Namespace, ref.Name)
			}
		}},
	{Row{ID: "GE-4", From: kinds(BackupBucket), To: kinds(Shoot), Fields: []string{"spec.shootRef"}},
		func(b *gardencorev1beta1.BackupBucket, add *collector) { add.toReference(Shoot, b.Spec.ShootRef) }},
})

var backupEntries = watch(watchOptions[gardencorev1beta1.BackupEntry]{
	kind: BackupEntry, resource: gardencorev1beta1.Resource("backupentries"), message: gardencorev1beta1.BackupEntryMessage,
	identify:    func(b *gardencorev1beta1.BackupEntry) (string, string) { return b.Namespace, b.Name },
	notFollowed: map[string]string{"spec.shootRef": "followed in the graph for self-hosted shoots"},
}, []row[gardencorev1beta1.BackupEntry]{
	{Row{ID: "GE-5", From: kinds(BackupBucket), To: kinds(BackupEntry), Fields: []string{"spec.bucketName"}},
		func(b *gardencorev1beta1.BackupEntry, add *collector) { add.from(BackupBucket, "", b.Spec.BucketName) }},
	{Row{ID: "GE-6", From: kinds(BackupEntry), To: kinds(Seed), Fields: []string{"spec.seedName"}},
		func(b *gardencorev1beta1.BackupEntry, add *collector) { add.to(Seed, "", deref(b.Spec.SeedName)) }},
	{Row{ID: "GE-7", From: kinds(BackupEntry), To: kinds(Seed), Fields: []string{"status.seedName"}},
		func(b *gardencorev1beta1.BackupEntry, add *collector) { add.to(Seed, "", deref(b.Status.SeedName)) }},
	{Row{ID: "GE-8", Joins: sameNamespace, From: kinds(BackupEntry), To: kinds(Shoot), Fields: []string{"metadata.ownerReferences[]"}, When: "the first one of kind Shoot, in the entry's namespace"},
		func(b *gardencorev1beta1.BackupEntry, add *collector) {
			for _, owner := range b.OwnerReferences {
				if owner.Kind == "Shoot" {
					add.to(Shoot, b.Namespace, owner.Name)
					return
				}
			}
		}},
})

var bastions = watch(watchOptions[operationsv1alpha1.Bastion]{
	kind: Bastion, resource: operationsv1alpha1.Resource("bastions"), message: operationsv1alpha1.BastionMessage,
	identify:    func(b *operationsv1alpha1.Bastion) (string, string) { return b.Namespace, b.Name },
	notFollowed: map[string]string{"spec.shootRef": "followed in the graph for self-hosted shoots"},
}, []row[operationsv1alpha1.Bastion]{
	{Row{ID: "GE-9", From: kinds(Bastion), To: kinds(Seed), Fields: []string{"spec.seedName"}},
		func(b *operationsv1alpha1.Bastion, add *collector) { add.to(Seed, "", deref(b.Spec.SeedName)) }},
})

var certificateSigningRequests = watch(watchOptions[certificatesv1.CertificateSigningRequest]{
	kind: CertificateSigningRequest, resource: certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"),
	identify: func(c *certificatesv1.CertificateSigningRequest) (string, string) { return "", c.Name }, update: "Create", onlyWithEdges: true,
}, []row[certificatesv1.CertificateSigningRequest]{
	{Row{ID: "GE-10", From: kinds(CertificateSigningRequest), To: kinds(Seed), Fields: []string{"spec.request"}, When: "the request is for the client certificate of a seed's gardenlet"},
		func(c *certificatesv1.CertificateSigningRequest, add *collector) {
			if seed, err := identity.SeedOfCertificateRequest(c.Spec.Request, c.Spec.Usages); err == nil {
				add.to(Seed, "", seed)
			}
		}},
})

var controllerDeployments = watch(watchOptions[gardencorev1.ControllerDeployment]{
	kind: ControllerDeployment, resource: gardencorev1.Resource("controllerdeployments"), message: gardencorev1.ControllerDeploymentMessage,
	identify: func(c *gardencorev1.ControllerDeployment) (string, string) { return "", c.Name }, onlyWithEdges: true,
}, []row[gardencorev1.ControllerDeployment]{
	{Row{ID: "GE-12", Joins: inGarden, From: kinds(Secret), To: kinds(ControllerDeployment), Fields: []string{"helm.ociRepository.pullSecretRef", "helm.ociRepository.caBundleSecretRef"}, When: "in namespace garden"},
		func(c *gardencorev1.ControllerDeployment, add *collector) {
			if c.Helm == nil || c.Helm.OCIRepository == nil {
				return
			}
			add.from(Secret, wellknown.Garden, nameOf(c.Helm.OCIRepository.PullSecretRef))
			add.from(Secret, wellknown.Garden, nameOf(c.Helm.OCIRepository.CABundleSecretRef))
		}},
	{Row{ID: "GE-13", Joins: inGarden, From: kinds(Secret, ConfigMap), To: kinds(ControllerDeployment), Fields: []string{"resources[].resourceRef"}, When: "in namespace garden"},
		func(c *gardencorev1.ControllerDeployment, add *collector) {
			add.resources(c.Resources, wellknown.Garden, add.self, kinds(Secret, ConfigMap))
		}},
})

var controllerInstallations = watch(watchOptions[gardencorev1beta1.ControllerInstallation]{
	kind: ControllerInstallation, resource: gardencorev1beta1.Resource("controllerinstallations"), message: gardencorev1beta1.ControllerInstallationMessage,
	identify: func(c *gardencorev1beta1.ControllerInstallation) (string, string) { return "", c.Name },
}, []row[gardencorev1beta1.ControllerInstallation]{
	{Row{ID: "GE-14", From: kinds(ControllerRegistration), To: kinds(ControllerInstallation), Fields: []string{"spec.registrationRef"}},
		func(c *gardencorev1beta1.ControllerInstallation, add *collector) {
			add.from(ControllerRegistration, "", c.Spec.RegistrationRef.Name)
		}},
	{Row{ID: "GE-15", From: kinds(ControllerInstallation), To: kinds(Seed), Fields: []string{"spec.seedRef"}},
		func(c *gardencorev1beta1.ControllerInstallation, add *collector) {
			add.to(Seed, "", nameOf(c.Spec.SeedRef))
		}},
	{Row{ID: "GE-16", From: kinds(ControllerDeployment), To: kinds(ControllerInstallation), Fields: []string{"spec.deploymentRef"}},
		func(c *gardencorev1beta1.ControllerInstallation, add *collector) {
			add.from(ControllerDeployment, "", nameOf(c.Spec.DeploymentRef))
		}},
	{Row{ID: "GE-17", From: kinds(ControllerInstallation), To: kinds(Shoot), Fields: []string{"spec.shootRef"}},
		func(c *gardencorev1beta1.ControllerInstallation, add *collector) {
			add.toReference(Shoot, c.Spec.ShootRef)
		}},
})

var credentialsBindings = watch(watchOptions[securityv1alpha1.CredentialsBinding]{
	kind: CredentialsBinding, resource: securityv1alpha1.Resource("credentialsbindings"), message: securityv1alpha1.CredentialsBindingMessage,
	identify:    func(c *securityv1alpha1.CredentialsBinding) (string, string) { return c.Namespace, c.Name },
	notFollowed: map[string]string{"provider": judged},
}, []row[securityv1alpha1.CredentialsBinding]{
	{Row{ID: "GE-18", From: kinds(Secret, WorkloadIdentity, InternalSecret), To: kinds(CredentialsBinding), Fields: []string{"credentialsRef"}},
		func(c *securityv1alpha1.CredentialsBinding, add *collector) {
			if kind, ok := kindOf(&c.CredentialsRef, kinds(Secret, WorkloadIdentity, InternalSecret)); ok {
				add.from(kind, c.CredentialsRef.Namespace, c.CredentialsRef.Name)
			}
		}},
})

var projects = watch(watchOptions[gardencorev1beta1.Project]{
	kind: Project, resource: gardencorev1beta1.Resource("projects"), message: gardencorev1beta1.ProjectMessage,
	identify: func(p *gardencorev1beta1.Project) (string, string) { return "", p.Name }, onlyWithEdges: true,
}, []row[gardencorev1beta1.Project]{
	{Row{ID: "GE-32", From: kinds(Project), To: kinds(Namespace), Fields: []string{"spec.namespace"}},
		func(p *gardencorev1beta1.Project, add *collector) { add.to(Namespace, "", deref(p.Spec.Namespace)) }},
})

var secretBindings = watch(watchOptions[gardencorev1beta1.SecretBinding]{
	kind: SecretBinding, resource: gardencorev1beta1.Resource("secretbindings"), message: gardencorev1beta1.SecretBindingMessage,
	identify:    func(s *gardencorev1beta1.SecretBinding) (string, string) { return s.Namespace, s.Name },
	notFollowed: map[string]string{"provider": judged},
}, []row[gardencorev1beta1.SecretBinding]{
	{Row{ID: "GE-19", From: kinds(Secret), To: kinds(SecretBinding), Fields: []string{"secretRef"}},
		func(s *gardencorev1beta1.SecretBinding, add *collector) {
			add.from(Secret, s.SecretRef.Namespace, s.SecretRef.Name)
		}},
})

var serviceAccounts = watch(watchOptions[corev1.ServiceAccount]{
	kind: ServiceAccount, resource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"),
	identify: func(s *corev1.ServiceAccount) (string, string) { return s.Namespace, s.Name }, onlyWithEdges: true,
}, []row[corev1.ServiceAccount]{
	{Row{ID: "GE-33", Joins: bootstrapSecret, From: kinds(Secret), To: kinds(ServiceAccount), Fields: []string{"secrets[]"}, When: "the ServiceAccount's name starts with " + wellknown.BootstrapServiceAccount},
		func(s *corev1.ServiceAccount, add *collector) {
			if !strings.HasPrefix(s.Name, wellknown.BootstrapServiceAccount) {
				return
			}
			for i := range s.Secrets {
				add.from(Secret, s.Namespace, s.Secrets[i].Name)
			}
		}},
})

func kinds(list ...graph.Kind) []graph.Kind { return list }
