// Package wellknown has the names that objects of a landscape have by convention (section 2.4 of the authorization
// contract).
package wellknown

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Namespaces.
const (
	Garden          = "garden"
	KubeSystem      = "kube-system"
	SeedLease       = "gardener-system-seed-lease"
	ShootIssuer     = "gardener-system-shoot-issuer"
	SystemPublic    = "gardener-system-public"
	SeedPrefix      = "seed-"
	ProjectPrefix   = "garden-"
	ClusterIdentity = "cluster-identity" // ConfigMap in KubeSystem
	GardenerInfo    = "gardener-info"    // ConfigMap in SystemPublic
)

// Users and groups.
const (
	SeedsGroup  = "gardener.cloud:system:seeds"
	ShootsGroup = "gardener.cloud:system:shoots"
	// ShootUserPrefix is the user name prefix of a self-hosted shoot's gardenlet, and GardenadmPrefix that of the
	// tool that sets the shoot up.
	ShootUserPrefix = "gardener.cloud:system:shoot:"
	GardenadmPrefix = "gardener.cloud:gardenadm:shoot:"
	SeedUserPrefix  = "gardener.cloud:system:seed:"
	// AmbiguousSeed was the name of gardenlets that were responsible for several seeds (ID-4).
	AmbiguousSeed = "<ambiguous>"
)

// Prefixes and names of single objects.
const (
	GeneratedBucketPrefix    = "generated-bucket-"
	SourceBackupEntryPrefix  = "source"
	BootstrapTokenPrefix     = "bootstrap-token-"
	BootstrapServiceAccount  = "gardenlet-bootstrap-"
	BootstrapperRole         = "gardener.cloud:system:seed-bootstrapper"
	BootstrapperPrefix       = BootstrapperRole + ":"
	ExtensionPrefix          = "extension-"
	ExtensionOfShootPrefix   = "extension-shoot--"
	SelfHostedShootPrefix    = "self-hosted-shoot-"
	GardenletLeaderElection  = "gardenlet-leader-election"
	ManagedSeedDescription   = "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource"
	GardenletDescription     = "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource"
	bootstrapDescriptionLead = "A bootstrap token for the Gardenlet for "
)

// Labels and annotations.
const (
	Operation       = "gardener.cloud/operation"
	RenewKubeconfig = "renew-kubeconfig"
	Issuer          = "authentication.gardener.cloud/issuer"
	ManagedIssuer   = "managed"
	Project         = "project.gardener.cloud/name"
	ShootName       = "shoot.gardener.cloud/name"
	ShootNamespace  = "shoot.gardener.cloud/namespace"
	Discovery       = "discovery.gardener.cloud/public"
	// DiscoveryBefore is the former name of the label Discovery (D-10).
	DiscoveryBefore = "authentication.gardener.cloud/public-keys"
	SeedNameLabel   = "name.seed.gardener.cloud/"
	Role            = "gardener.cloud/role"
	RoleIssuer      = "shoot-service-account-issuer"
)

// Suffixes of a shoot's objects in its project's namespace.
var (
	ShootSecrets         = []string{".ca-cluster", ".ssh-keypair", ".ssh-keypair.old", ".monitoring"}
	ShootInternalSecrets = []string{".ca-client"}
	ShootConfigMaps      = []string{".ca-cluster", ".ca-kubelet"}
)

// ShootKubeconfig is the suffix of a Secret that older releases wrote.
const ShootKubeconfig = ".kubeconfig"

// SeedNamespace is the namespace of a seed in the garden.
func SeedNamespace(seed string) string { return SeedPrefix + seed }

// BootstrapTokenID is the ID of the bootstrap token for an object; namespace may be empty.
func BootstrapTokenID(namespace, name string) string {
	identity := name
	if namespace != "" {
		identity = namespace + "--" + name
	}
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])[:6]
}

// BootstrapTokenSecret is the name of the Secret with that token, in KubeSystem.
func BootstrapTokenSecret(namespace, name string) string {
	return BootstrapTokenPrefix + BootstrapTokenID(namespace, name)
}

// Bootstrapper is the ClusterRoleBinding of a bootstrap ServiceAccount.
func Bootstrapper(namespace, managedSeed string) string {
	return BootstrapperPrefix + namespace + ":" + BootstrapServiceAccount + managedSeed
}

// ParseBootstrapper is the reverse of Bootstrapper; the prefix of the ServiceAccount may be missing. It is not ok if
// the name has too many parts.
func ParseBootstrapper(name string) (namespace, managedSeed string, ok bool) {
	rest, found := strings.CutPrefix(name, BootstrapperPrefix)
	if !found {
		return "", "", false
	}
	namespace, account, found := strings.Cut(rest, ":")
	if !found {
		namespace, account = "", rest
	}
	managedSeed = strings.TrimPrefix(account, BootstrapServiceAccount)
	return namespace, managedSeed, managedSeed != "" && !strings.Contains(managedSeed, ":")
}

// ParseBootstrapDescription reads the purpose of a bootstrap token; kind is "ManagedSeed", "Gardenlet" or "".
func ParseBootstrapDescription(text string) (kind, namespace, name string) {
	lead := bootstrapDescriptionLead
	switch {
	case strings.Contains(text, ManagedSeedDescription):
		kind, lead = "ManagedSeed", lead+ManagedSeedDescription+" "
	case strings.Contains(text, GardenletDescription):
		kind, lead = "Gardenlet", lead+GardenletDescription+" "
	}
	parts := strings.Split(strings.TrimPrefix(strings.TrimSuffix(text, "."), lead), "/")
	if len(parts) == 1 {
		return kind, "", parts[0]
	}
	return kind, parts[0], parts[1]
}

// CutShootSuffix returns the name of the Shoot to which an object belongs by its name.
func CutShootSuffix(name string, suffixes []string) (shoot string, ok bool) {
	for _, suffix := range suffixes {
		if shoot, found := strings.CutSuffix(name, suffix); found && shoot != "" {
			return shoot, true
		}
	}
	return "", false
}
