package relation

import (
	"strings"
	"time"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	gardenletv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/gardenlet/v1alpha1"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
)

var seeds = watch(watchOptions[gardencorev1beta1.Seed]{
	kind: Seed, resource: gardencorev1beta1.Resource("seeds"), message: gardencorev1beta1.SeedMessage,
	identify:    func(s *gardencorev1beta1.Seed) (string, string) { return "", s.Name },
	notFollowed: map[string]string{"status.clientCertificateExpirationTimestamp": "a fact for GE-22 and GE-29 to GE-31, no reference"},
}, []row[gardencorev1beta1.Seed]{
	{Row{ID: "GE-34", Joins: seedNamespace, From: kinds(Namespace), To: kinds(Seed), When: "Namespace seed-<seed>"},
		func(s *gardencorev1beta1.Seed, add *collector) {
			add.from(Namespace, "", wellknown.SeedNamespace(s.Name))
		}},
	{Row{ID: "GE-35", Joins: seedLease, From: kinds(Lease), To: kinds(Seed), When: "Lease " + wellknown.SeedLease + "/<seed>", Class: graph.Manages},
		func(s *gardencorev1beta1.Seed, add *collector) { add.from(Lease, wellknown.SeedLease, s.Name) }},
	{Row{ID: "GE-36", Joins: clusterIdentity, From: kinds(ConfigMap), To: kinds(Seed), When: "ConfigMap " + wellknown.KubeSystem + "/" + wellknown.ClusterIdentity + ", for every Seed"},
		func(_ *gardencorev1beta1.Seed, add *collector) {
			add.from(ConfigMap, wellknown.KubeSystem, wellknown.ClusterIdentity)
		}},
	{Row{ID: "GE-37", From: credentials, To: kinds(Seed), Fields: []string{"spec.backup.credentialsRef", "spec.backup.secretRef"}},
		func(s *gardencorev1beta1.Seed, add *collector) { add.backup(s.Spec.Backup) }},
	{Row{ID: "GE-38", From: credentials, To: kinds(Seed), Fields: []string{"spec.dns.provider.credentialsRef", "spec.dns.provider.secretRef"}},
		func(s *gardencorev1beta1.Seed, add *collector) { add.dns(s.Spec.DNS.Provider) }},
	{Row{ID: "GE-39", From: credentials, To: kinds(Seed), Fields: []string{"spec.dns.internal.credentialsRef", "spec.dns.internal.secretRef"}},
		func(s *gardencorev1beta1.Seed, add *collector) { add.dns(s.Spec.DNS.Internal) }},
	{Row{ID: "GE-40", From: credentials, To: kinds(Seed), Fields: []string{"spec.dns.defaults[].credentialsRef", "spec.dns.defaults[].secretRef"}},
		func(s *gardencorev1beta1.Seed, add *collector) {
			for i := range s.Spec.DNS.Defaults {
				add.dns(&s.Spec.DNS.Defaults[i])
			}
		}},
	{Row{ID: "GE-41", Joins: inGarden, From: resources, To: kinds(Seed), Fields: []string{"spec.resources[].resourceRef"}, When: "in namespace garden"},
		func(s *gardencorev1beta1.Seed, add *collector) {
			add.resources(s.Spec.Resources, wellknown.Garden, add.self, resources)
		}},
	{Row{ID: "GE-41a", From: kinds(Secret), To: kinds(Seed), Fields: []string{"spec.secretRef"}, When: "only old Seeds have it"},
		func(s *gardencorev1beta1.Seed, add *collector) { add.credentials(nil, s.Spec.SecretRef) }},
})

func (c *collector) backup(backup *gardencorev1beta1.SeedBackup) {
	if backup != nil {
		c.credentials(backup.CredentialsRef, backup.SecretRef)
	}
}

func (c *collector) dns(provider *gardencorev1beta1.SeedDNSProvider) {
	if provider != nil {
		c.credentials(provider.CredentialsRef, provider.SecretRef)
	}
}

const gardenletConfig = "spec.config"

var gardenlets = watch(watchOptions[seedmanagementv1alpha1.Gardenlet]{
	kind: Gardenlet, resource: seedmanagementv1alpha1.Resource("gardenlets"), message: seedmanagementv1alpha1.GardenletMessage, update: "Create",
	identify: func(g *seedmanagementv1alpha1.Gardenlet) (string, string) { return g.Namespace, g.Name },
}, []row[seedmanagementv1alpha1.Gardenlet]{
	{Row{ID: "GE-20", Joins: ofSeedGardenlet, From: kinds(Gardenlet), To: kinds(Seed), When: "the Seed with the Gardenlet's name; not for names that start with " + wellknown.SelfHostedShootPrefix},
		func(g *seedmanagementv1alpha1.Gardenlet, add *collector) {
			if !strings.HasPrefix(g.Name, wellknown.SelfHostedShootPrefix) {
				add.to(Seed, "", g.Name)
			}
		}},
	{Row{ID: "GE-21", From: credentials, To: kinds(Gardenlet), Fields: []string{gardenletConfig}, When: "seedConfig.spec.backup of the configuration"},
		func(g *seedmanagementv1alpha1.Gardenlet, add *collector) {
			if config, err := gardenletv1alpha1.Decode(g.Spec.Config); err == nil && config.SeedConfig != nil {
				add.backup(config.SeedConfig.Spec.Backup)
			}
		}},
	{Row{ID: "GE-22", Joins: bootstrapToken, From: kinds(Secret), To: kinds(Gardenlet), Needs: kinds(Seed), Class: graph.Manages,
		When: "the bootstrap token's Secret, if the Seed exists and its certificate has expired or the Gardenlet is annotated " + wellknown.Operation + "=" + wellknown.RenewKubeconfig},
		func(g *seedmanagementv1alpha1.Gardenlet, add *collector) {
			if _, err := gardenletv1alpha1.Decode(g.Spec.Config); err != nil {
				return
			}
			if exists, expires := add.facts.Seed(g.Name); exists && (expired(expires, add.facts.Now()) || renews(g.Annotations)) {
				add.from(Secret, wellknown.KubeSystem, wellknown.BootstrapTokenSecret(g.Namespace, g.Name))
			}
		}},
	{Row{ID: "GE-23", Joins: sameNamespace, From: kinds(Secret), To: kinds(Gardenlet), Fields: []string{"spec.deployment.helm.ociRepository.pullSecretRef", "spec.deployment.helm.ociRepository.caBundleSecretRef"}},
		func(g *seedmanagementv1alpha1.Gardenlet, add *collector) {
			repository := &g.Spec.Deployment.Helm.OCIRepository
			add.from(Secret, g.Namespace, nameOf(repository.PullSecretRef))
			add.from(Secret, g.Namespace, nameOf(repository.CABundleSecretRef))
		}},
})

const managedSeedConfig = "spec.gardenlet.config"

var managedSeeds = watch(watchOptions[seedmanagementv1alpha1.ManagedSeed]{
	kind: ManagedSeed, resource: seedmanagementv1alpha1.Resource("managedseeds"), message: seedmanagementv1alpha1.ManagedSeedMessage,
	identify:    func(m *seedmanagementv1alpha1.ManagedSeed) (string, string) { return m.Namespace, m.Name },
	notFollowed: map[string]string{"spec.gardenlet.bootstrap": "decides about GE-29 to GE-31, no reference"},
}, []row[seedmanagementv1alpha1.ManagedSeed]{
	{Row{ID: "GE-24", Joins: sameNamespace, From: kinds(ManagedSeed), To: kinds(Shoot), Fields: []string{"spec.shoot"}},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) {
			add.to(Shoot, m.Namespace, nameOf(m.Spec.Shoot))
		}},
	{Row{ID: "GE-25", Joins: sameName, From: kinds(Seed), To: kinds(ManagedSeed), When: "the Seed with the ManagedSeed's name, for requests for the Seed itself", Class: graph.Direct},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) { add.from(Seed, "", m.Name) }},
	{Row{ID: "GE-26", From: credentials, To: kinds(ManagedSeed), Fields: []string{managedSeedConfig}, When: "seedConfig.spec.backup of the configuration", Class: graph.Manages},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) {
			if config := configOf(m); config != nil && config.SeedConfig != nil {
				add.backup(config.SeedConfig.Spec.Backup)
			}
		}},
	{Row{ID: "GE-27", Joins: sameName, From: kinds(ManagedSeed), To: kinds(Seed), When: "the Seed with the ManagedSeed's name"},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) { add.to(Seed, "", m.Name) }},
	{Row{ID: "GE-28", Joins: inGarden, From: resources, To: kinds(Seed), Fields: []string{managedSeedConfig}, When: "seedConfig.spec.resources of the configuration, in namespace garden"},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) {
			if config := configOf(m); config != nil && config.SeedConfig != nil {
				add.resources(config.SeedConfig.Spec.Resources, wellknown.Garden, SeedVertex(m.Name), resources)
			}
		}},
	{Row{ID: "GE-29", Joins: bootstrapToken, From: kinds(Secret), To: kinds(ManagedSeed), Needs: kinds(Seed), Class: graph.Manages,
		When: "the bootstrap token's Secret, while bootstrapping with mode " + seedmanagementv1alpha1.BootstrapToken},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) {
			if bootstraps(m, seedmanagementv1alpha1.BootstrapToken, add.facts) {
				add.from(Secret, wellknown.KubeSystem, wellknown.BootstrapTokenSecret(m.Namespace, m.Name))
			}
		}},
	{Row{ID: "GE-30", Joins: bootstrapAccount, From: kinds(ServiceAccount), To: kinds(ManagedSeed), Needs: kinds(Seed), Class: graph.Manages,
		When: wellknown.BootstrapServiceAccount + "<name>, while bootstrapping with mode " + seedmanagementv1alpha1.BootstrapServiceAccount},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) {
			if bootstraps(m, seedmanagementv1alpha1.BootstrapServiceAccount, add.facts) {
				add.from(ServiceAccount, m.Namespace, wellknown.BootstrapServiceAccount+m.Name)
			}
		}},
	{Row{ID: "GE-31", Joins: bootstrapBinding, From: kinds(ClusterRoleBinding), To: kinds(ManagedSeed), Needs: kinds(Seed), Class: graph.Manages,
		When: "the ServiceAccount's, as GE-30"},
		func(m *seedmanagementv1alpha1.ManagedSeed, add *collector) {
			if bootstraps(m, seedmanagementv1alpha1.BootstrapServiceAccount, add.facts) {
				add.from(ClusterRoleBinding, "", wellknown.Bootstrapper(m.Namespace, m.Name))
			}
		}},
})

func configOf(m *seedmanagementv1alpha1.ManagedSeed) *gardenletv1alpha1.Configuration {
	if m.Spec.Gardenlet == nil {
		return nil
	}
	config, err := gardenletv1alpha1.Decode(m.Spec.Gardenlet.Config)
	if err != nil {
		return nil
	}
	return config
}

// bootstraps reports whether a ManagedSeed is allowed to bootstrap its gardenlet in a mode (6.5).
func bootstraps(m *seedmanagementv1alpha1.ManagedSeed, mode string, facts Facts) bool {
	if configOf(m) == nil || deref(m.Spec.Gardenlet.Bootstrap) != mode {
		return false
	}
	exists, expires := facts.Seed(m.Name)
	return !exists || expired(expires, facts.Now()) || renews(m.Annotations)
}

func expired(expires, now time.Time) bool { return !expires.IsZero() && expires.Before(now) }

func renews(annotations map[string]string) bool {
	return annotations[wellknown.Operation] == wellknown.RenewKubeconfig
}
