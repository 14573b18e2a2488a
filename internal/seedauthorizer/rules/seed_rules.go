package rules

import (
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

const (
	core           = "core.gardener.cloud"
	seedManagement = "seedmanagement.gardener.cloud"
	security       = "security.gardener.cloud"
	operations     = "operations.gardener.cloud"
	rbac           = "rbac.authorization.k8s.io"
)

// seeds is the table of the SeedAuthorizer (section 4 of the authorization contract).
var seeds = newTable("SeedAuthorizer", func(user string, groups []string) (client, bool) {
	c, ok := identity.OfSeed(user, groups)
	if !ok {
		return client{}, false
	}
	return client{Type: c.Type, Seed: c.Seed, name: c.Seed, sink: relation.SeedVertex(c.Seed)}, true
}, []*rule{
	{id: "SR-1", group: core, version: "v1beta1", resource: "backupbuckets", kind: relation.BackupBucket,
		always: verbCreate | reads, path: writes, subresources: []string{"status", "finalizers"}},
	{id: "SR-2", group: core, version: "v1beta1", resource: "backupentries", kind: relation.BackupEntry,
		always: verbCreate | reads, path: writes, subresources: []string{"status"}},
	{id: "SR-3", group: operations, version: "v1alpha1", resource: "bastions", kind: relation.Bastion,
		always: verbCreate, path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, selectors: ownSeedField("spec.seedName"), seedReads: true},
	{id: "SR-4g", group: "certificates.k8s.io", version: "v1", resource: "certificatesigningrequests", kind: relation.CertificateSigningRequest,
		always: verbCreate, path: reads, subresources: []string{"seedclient"},
		extension: &rule{id: "SR-4e", path: reads}},
	{id: "SR-5", group: core, version: "v1beta1", resource: "cloudprofiles", kind: relation.CloudProfile, path: reads},
	{id: "SR-6", group: core, version: "v1beta1", resource: "namespacedcloudprofiles", kind: relation.NamespacedCloudProfile, path: reads},
	{id: "SR-7g", group: rbac, version: "v1", resource: "clusterrolebindings", kind: relation.ClusterRoleBinding,
		always: verbCreate, path: verbGet | verbUpdate | verbPatch, exceptions: []exception{ownBootstrapper},
		extension: &rule{id: "SR-7e", path: verbGet}},
	{id: "SR-8", version: "v1", resource: "configmaps", kind: relation.ConfigMap,
		always: verbCreate, path: reads | writes, referenced: true, exceptions: []exception{gardenerInfo, clusterIdentity}},
	{id: "SR-9", group: core, version: "v1", resource: "controllerdeployments", kind: relation.ControllerDeployment, path: reads},
	{id: "SR-10", group: core, version: "v1beta1", resource: "controllerinstallations", kind: relation.ControllerInstallation,
		path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, selectors: ownSeedField("spec.seedRef.name"), seedReads: true},
	{id: "SR-11", group: core, version: "v1beta1", resource: "controllerregistrations", kind: relation.ControllerRegistration, always: reads},
	{id: "SR-12", group: security, version: "v1alpha1", resource: "credentialsbindings", kind: relation.CredentialsBinding, path: reads},
	{id: "SR-13", version: "v1", resource: "events", always: verbCreate | verbPatch, free: true},
	{id: "SR-13", group: "events.k8s.io", version: "v1", resource: "events", always: verbCreate | verbPatch, free: true},
	{id: "SR-14", group: core, version: "v1beta1", resource: "exposureclasses", kind: relation.ExposureClass, path: reads},
	{id: "SR-15", group: core, version: "v1beta1", resource: "internalsecrets", kind: relation.InternalSecret,
		always: verbCreate, path: reads | writes, referenced: true},
	{id: "SR-16g", group: "coordination.k8s.io", version: "v1", resource: "leases", kind: relation.Lease,
		always: verbCreate, path: reads | verbUpdate | verbPatch, exceptions: []exception{ownLease, leaderElection},
		extension: &rule{id: "SR-16e", exceptions: []exception{leasesOfExtensions}}},
	{id: "SR-17", group: seedManagement, version: "v1alpha1", resource: "gardenlets", kind: relation.Gardenlet,
		always: verbCreate, path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, namespace: gardenOnly, selectors: ownSeedField("metadata.name"), seedReads: true},
	{id: "SR-18", group: seedManagement, version: "v1alpha1", resource: "managedseeds", kind: relation.ManagedSeed,
		path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, selectors: ownSeedLabel, seedReads: true},
	{id: "SR-19", version: "v1", resource: "namespaces", kind: relation.Namespace, path: reads, exceptions: []exception{gardenNamespace}},
	{id: "SR-20", group: core, version: "v1beta1", resource: "projects", kind: relation.Project, path: reads},
	{id: "SR-21", group: core, version: "v1beta1", resource: "secretbindings", kind: relation.SecretBinding, path: reads},
	{id: "SR-22", version: "v1", resource: "secrets", kind: relation.Secret,
		always: verbCreate, path: verbGet | writes, referenced: true, exceptions: []exception{secretsOfSeed, ownBootstrapToken, tokensOfGardenlets}},
	{id: "SR-23", group: security, version: "v1alpha1", resource: "workloadidentities", kind: relation.WorkloadIdentity,
		path: reads | verbCreate | verbPatch, subresources: []string{"token"}},
	{id: "SR-24", group: core, version: "v1beta1", resource: "seeds", kind: relation.Seed,
		always: verbCreate, path: reads | writes, subresources: []string{"status"}, selectors: ownSeedLabel, seedReads: true}, // This includes BH-SA-27.
	{id: "SR-25g", version: "v1", resource: "serviceaccounts", kind: relation.ServiceAccount,
		always: verbCreate, path: verbGet | verbUpdate | verbPatch, exceptions: []exception{ownBootstrapServiceAccount, serviceAccountsOfSeed},
		extension: &rule{id: "SR-25e", path: verbGet}},
	{id: "SR-26", group: core, version: "v1beta1", resource: "shoots", kind: relation.Shoot,
		path: reads | verbUpdate | verbPatch, subresources: []string{"status", "finalizers"}, selectors: ownSeedLabel, seedReads: true, exceptions: []exception{ownShoot}},
	{id: "SR-27", group: core, version: "v1beta1", resource: "shootstates", kind: relation.ShootState,
		always: verbCreate, path: reads | writes},
})

// ownSeedField selects by a field whose value is the name of the seed.
func ownSeedField(field string) []selector {
	return []selector{{keys: []string{field}, fields: func(c *client) []string { return []string{c.Seed} }}}
}

// ownSeedLabel is the label that gardener-apiserver sets on the objects of a seed, and removes from other objects.
var ownSeedLabel = []selector{{label: func(c *client) ownLabel {
	return ownLabel{key: wellknown.SeedNameLabel + c.Seed, value: "true", keyNamesClient: true}
}}}

func gardenOnly(*client) string { return wellknown.Garden }

// The exceptions, in the order of section 4.2.
var (
	ownBootstrapper = exception{"SP-1", "delete of " + wellknown.BootstrapperPrefix + "garden:[" + wellknown.BootstrapServiceAccount + "]<own seed>", func(q *request) (decision, bool) {
		namespace, seed, ok := wellknown.ParseBootstrapper(q.name)
		return q.allowIf(ok && q.verb == verbDelete && q.namespace == "" && namespace == wellknown.Garden && seed == q.client.Seed, "SP-1")
	}}
	gardenerInfo = exception{"SP-2", "get of " + wellknown.SystemPublic + "/" + wellknown.GardenerInfo, func(q *request) (decision, bool) {
		return q.allowIf(q.verb == verbGet && q.namespace == wellknown.SystemPublic && q.name == wellknown.GardenerInfo, "SP-2")
	}}
	leasesOfExtensions = exception{"SP-3", "everything in the own seed's namespace, nothing elsewhere", func(q *request) (decision, bool) {
		switch {
		case !q.inSeedNamespace():
			return q.noOpinion("SP-3", "lease object is not in seed namespace"), true
		case q.verb&all == 0:
			return q.noOpinion("SP-3", verbsAllowed+list(all.names(), false)), true
		}
		return q.allow("SP-3"), true
	}}
	leaderElection = exception{"SP-3b", "create, get, list, watch, update of " + wellknown.GardenletLeaderElection + " in any namespace, under readScope All", func(q *request) (decision, bool) {
		return q.allowIf(q.name == wellknown.GardenletLeaderElection && q.verb.has(verbCreate|reads|verbUpdate) && q.readsAll(), "SP-3b")
	}}
	gardenNamespace = exception{"SP-4", "get, list, watch of garden by name, under readScope All", func(q *request) (decision, bool) {
		return q.allowIf(q.verb.has(reads) && q.name == wellknown.Garden && q.readsAll(), "SP-4")
	}}
	secretsOfSeed = exception{"SP-5", "get, list, watch in the own seed's namespace", func(q *request) (decision, bool) {
		return q.allowIf(q.verb.has(reads) && q.inSeedNamespace(), "SP-5")
	}}
	ownBootstrapToken = exception{"SP-6", "delete of the own bootstrap token in " + wellknown.KubeSystem, func(q *request) (decision, bool) {
		return q.allowIf(q.verb == verbDelete && q.namespace == wellknown.KubeSystem && strings.HasPrefix(q.name, wellknown.BootstrapTokenPrefix) &&
			q.name == wellknown.BootstrapTokenSecret(wellknown.Garden, q.client.Seed), "SP-6")
	}}
	tokensOfGardenlets = exception{"SP-11", "nothing else for extensions with bootstrap tokens in " + wellknown.KubeSystem + " and Secrets of bootstrap ServiceAccounts", func(q *request) (decision, bool) {
		return q.noOpinion("SP-11", "only the gardenlet of a seed needs a bootstrap token"), q.client.Type == identity.Extension && q.isBootstrapToken()
	}}
	ownBootstrapServiceAccount = exception{"SP-7", "delete of garden/" + wellknown.BootstrapServiceAccount + "<own seed>", func(q *request) (decision, bool) {
		seed, found := strings.CutPrefix(q.name, wellknown.BootstrapServiceAccount)
		return q.allowIf(found && q.verb == verbDelete && q.namespace == wellknown.Garden && seed == q.client.Seed, "SP-7")
	}}
	serviceAccountsOfSeed = exception{"SP-8", "everything in the own seed's namespace", func(q *request) (decision, bool) {
		return q.allowIf(q.inSeedNamespace(), "SP-8")
	}}
	ownShoot = exception{"SP-9", "get of garden/<own seed>", func(q *request) (decision, bool) {
		return q.allowIf(q.verb == verbGet && q.namespace == wellknown.Garden && q.name == q.client.Seed, "SP-9")
	}}
	// Under readScope Related, GE-36 leads to each Seed that exists. A self-hosted shoot has no such edge.
	clusterIdentity = exception{"D-4", "get, list, watch of " + wellknown.KubeSystem + "/" + wellknown.ClusterIdentity + " by name, under readScope All, and for clients of self-hosted shoots", func(q *request) (decision, bool) {
		if !q.verb.has(reads) || q.namespace != wellknown.KubeSystem || q.name != wellknown.ClusterIdentity {
			return decision{}, false
		}
		return q.allowIf(q.client.Shoot != "" || q.readsAll(), "D-4")
	}}
	ownLease = exception{"C1", "delete of " + wellknown.SeedLease + "/<own seed>", func(q *request) (decision, bool) {
		return q.allowIf(q.verb == verbDelete && q.namespace == wellknown.SeedLease && q.name == q.client.Seed, "C1")
	}}
)

// isBootstrapToken reports whether a Secret has a token with which a gardenlet starts: with the token, an extension
// would become that gardenlet. The ServiceAccount of a token names the Secret with the token (GE-33).
func (q *request) isBootstrapToken() bool {
	if q.namespace == wellknown.KubeSystem && strings.HasPrefix(q.name, wellknown.BootstrapTokenPrefix) {
		return true
	}
	if q.name == "" {
		return false
	}
	edges := q.authorizer.Graph.EdgesFrom(graph.Vertex{Kind: relation.Secret, Namespace: q.namespace, Name: q.name})
	return slices.ContainsFunc(edges, func(e graph.Edge) bool { return e.To.Kind == relation.ServiceAccount })
}
