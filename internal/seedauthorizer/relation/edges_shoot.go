package relation

import (
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
)

const (
	apiServer = "spec.kubernetes.kubeAPIServer."
	// judged is the reason why a row does not follow a field.
	judged = "read by webhooks through package referrers, no reference of the graph"
)

// issuerRow is also computed alone, when the label of a Shoot's namespace changes.
var issuerRow = row[gardencorev1beta1.Shoot]{
	Row{ID: "GE-57", Joins: issuerSecret, From: kinds(Secret), To: kinds(Shoot), Needs: kinds(Namespace), Class: graph.Manages,
		When: "Secret " + wellknown.ShootIssuer + "/<project>--<uid>, if annotated " + wellknown.Issuer + "=" + wellknown.ManagedIssuer + " and the namespace's label names the project"},
	func(s *gardencorev1beta1.Shoot, add *collector) {
		if !hasManagedIssuer(s) {
			return
		}
		if project := add.facts.ProjectOf(s.Namespace); project != "" {
			add.from(Secret, wellknown.ShootIssuer, project+"--"+string(s.UID))
		}
	},
}

func hasManagedIssuer(s *gardencorev1beta1.Shoot) bool {
	return s.Annotations[wellknown.Issuer] == wellknown.ManagedIssuer && s.UID != ""
}

var shoots = watch(watchOptions[gardencorev1beta1.Shoot]{
	kind: Shoot, resource: gardencorev1beta1.Resource("shoots"), message: gardencorev1beta1.ShootMessage,
	identify: func(s *gardencorev1beta1.Shoot) (string, string) { return s.Namespace, s.Name },
	notFollowed: map[string]string{
		"status.lastOperation":                                             "read by SeedRestriction, no reference",
		"spec.provider.workers[].controlPlane.backup":                      "read by ShootRestriction: the BackupBucket of a self-hosted shoot names the same credentials",
		"spec.kubernetes.version":                                          judged,
		"status.advertisedAddresses[]":                                     judged,
		apiServer + "admissionPlugins[]":                                   judged,
		apiServer + "enableAnonymousAuthentication":                        judged,
		apiServer + "serviceAccountConfig":                                 judged,
		apiServer + "structuredAuthorization.kubeconfigs[].authorizerName": judged,
	},
}, []row[gardencorev1beta1.Shoot]{
	{Row{ID: "GE-42", Joins: namespaceOf, From: kinds(Namespace), To: kinds(Shoot), When: "the Shoot's namespace"},
		func(s *gardencorev1beta1.Shoot, add *collector) { add.from(Namespace, "", s.Namespace) }},
	{Row{ID: "GE-43", Joins: sameNamespace, From: kinds(SecretBinding, CredentialsBinding), To: kinds(Shoot), Fields: []string{"spec.secretBindingName", "spec.credentialsBindingName"}},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			add.from(SecretBinding, s.Namespace, deref(s.Spec.SecretBindingName))
			add.from(CredentialsBinding, s.Namespace, deref(s.Spec.CredentialsBindingName))
		}},
	{Row{ID: "GE-44", Joins: profile, From: kinds(CloudProfile, NamespacedCloudProfile), To: kinds(Shoot), Fields: []string{"spec.cloudProfile", "spec.cloudProfileName"}, When: "spec.cloudProfile comes first"},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			switch profile := s.Spec.CloudProfile; {
			case profile == nil:
				add.from(CloudProfile, "", deref(s.Spec.CloudProfileName))
			case profile.Kind == "" || profile.Kind == "CloudProfile":
				add.from(CloudProfile, "", profile.Name)
			case profile.Kind == "NamespacedCloudProfile":
				add.from(NamespacedCloudProfile, s.Namespace, profile.Name)
			}
		}},
	{Row{ID: "GE-45", Joins: sameNamespace, From: resources, To: kinds(Shoot), Fields: []string{"spec.resources[].resourceRef"}},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			add.resources(s.Spec.Resources, s.Namespace, add.self, resources)
		}},
	{Row{ID: "GE-46", From: kinds(Shoot), To: kinds(Seed), Fields: []string{"spec.seedName"}},
		func(s *gardencorev1beta1.Shoot, add *collector) { add.to(Seed, "", deref(s.Spec.SeedName)) }},
	{Row{ID: "GE-47", From: kinds(Shoot), To: kinds(Seed), Fields: []string{"status.seedName"}, When: "both during a migration"},
		func(s *gardencorev1beta1.Shoot, add *collector) { add.to(Seed, "", deref(s.Status.SeedName)) }},
	{Row{ID: "GE-48", From: kinds(ExposureClass), To: kinds(Shoot), Fields: []string{"spec.exposureClassName"}},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			add.from(ExposureClass, "", deref(s.Spec.ExposureClassName))
		}},
	{Row{ID: "GE-49", Joins: sameNamespace, From: kinds(ConfigMap), To: kinds(Shoot), Fields: []string{apiServer + "auditConfig.auditPolicy.configMapRef"}},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			if k := s.Spec.Kubernetes.KubeAPIServer; k != nil && k.AuditConfig != nil && k.AuditConfig.AuditPolicy != nil {
				add.from(ConfigMap, s.Namespace, nameOf(k.AuditConfig.AuditPolicy.ConfigMapRef))
			}
		}},
	{Row{ID: "GE-50", Joins: sameNamespace, From: kinds(ConfigMap), To: kinds(Shoot), Fields: []string{apiServer + "structuredAuthentication.configMapName"}},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			if k := s.Spec.Kubernetes.KubeAPIServer; k != nil && k.StructuredAuthentication != nil {
				add.from(ConfigMap, s.Namespace, k.StructuredAuthentication.ConfigMapName)
			}
		}},
	{Row{ID: "GE-51", Joins: sameNamespace, From: kinds(ConfigMap, Secret), To: kinds(Shoot), Fields: []string{apiServer + "structuredAuthorization.configMapName", apiServer + "structuredAuthorization.kubeconfigs[].secretName"}},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			k := s.Spec.Kubernetes.KubeAPIServer
			if k == nil || k.StructuredAuthorization == nil {
				return
			}
			add.from(ConfigMap, s.Namespace, k.StructuredAuthorization.ConfigMapName)
			for i := range k.StructuredAuthorization.Kubeconfigs {
				add.from(Secret, s.Namespace, k.StructuredAuthorization.Kubeconfigs[i].SecretName)
			}
		}},
	{Row{ID: "GE-52", Joins: sameNamespace, From: credentials, To: kinds(Shoot), Fields: []string{"spec.dns.providers[].credentialsRef", "spec.dns.providers[].secretName"}},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			if s.Spec.DNS == nil {
				return
			}
			for i := range s.Spec.DNS.Providers {
				provider := &s.Spec.DNS.Providers[i]
				if provider.CredentialsRef == nil {
					add.from(Secret, s.Namespace, deref(provider.SecretName))
				} else if kind, ok := kindOf(provider.CredentialsRef, credentials); ok {
					add.from(kind, s.Namespace, provider.CredentialsRef.Name)
				}
			}
		}},
	{Row{ID: "GE-53", Joins: byShootName(wellknown.ShootSecrets), From: kinds(Secret), To: kinds(Shoot), When: "<shoot>.ca-cluster, .ssh-keypair, .ssh-keypair.old, .monitoring", Class: graph.Manages},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			add.byName(Secret, &s.Object, wellknown.ShootSecrets)
		}},
	{Row{ID: "GE-54", Joins: byShootName(wellknown.ShootInternalSecrets), From: kinds(InternalSecret), To: kinds(Shoot), When: "<shoot>.ca-client", Class: graph.Manages},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			add.byName(InternalSecret, &s.Object, wellknown.ShootInternalSecrets)
		}},
	{Row{ID: "GE-55", Joins: byShootName(wellknown.ShootConfigMaps), From: kinds(ConfigMap), To: kinds(Shoot), When: "<shoot>.ca-cluster, .ca-kubelet", Class: graph.Manages},
		func(s *gardencorev1beta1.Shoot, add *collector) {
			add.byName(ConfigMap, &s.Object, wellknown.ShootConfigMaps)
		}},
	{Row{ID: "GE-56", Joins: itself, From: kinds(ShootState), To: kinds(Shoot), When: "the ShootState with the Shoot's name", Class: graph.Manages},
		func(s *gardencorev1beta1.Shoot, add *collector) { add.from(ShootState, s.Namespace, s.Name) }},
	issuerRow,
})

// byName adds the edges of objects that belong to a Shoot by their name.
func (c *collector) byName(kind graph.Kind, shoot *partialmeta.Object, suffixes []string) {
	for _, suffix := range suffixes {
		c.from(kind, shoot.Namespace, shoot.Name+suffix)
	}
}
