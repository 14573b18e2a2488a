package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// NewShootAuthorizer returns the ShootAuthorizer. It calls the SeedAuthorizer for extensions of shoots that are
// seeds, too.
func NewShootAuthorizer(o Options, seeds *Authorizer) *Authorizer {
	return &Authorizer{Options: o, table: shoots, seeds: seeds}
}

// shoots is the table of the ShootAuthorizer (section 8.2 of the authorization contract).
var shoots = shootTable()

func shootTable() *table {
	t := newTable("ShootAuthorizer", func(user string, groups []string) (client, bool) {
		c, ok := identity.OfShoot(user, groups)
		if !ok {
			return client{}, false
		}
		return client{
			Type: c.Type, Namespace: c.Namespace, Shoot: c.Name, name: c.Namespace + "/" + c.Name,
			sink:         graph.Vertex{Kind: relation.Shoot, Namespace: c.Namespace, Name: c.Name},
			installation: graph.Vertex{Kind: relation.ControllerInstallation, Name: c.Installation},
		}, true
	}, []*rule{
		{id: "SH-1", group: core, version: "v1beta1", resource: "backupbuckets", kind: relation.BackupBucket,
			always: verbCreate, path: reads | writes, subresources: []string{"status", "finalizers"}, selectors: ownShootRef},
		{id: "SH-2", group: core, version: "v1beta1", resource: "backupentries", kind: relation.BackupEntry,
			always: verbCreate, path: reads | writes, subresources: []string{"status"}, selectors: ownShootRef},
		{id: "SH-3", group: operations, version: "v1alpha1", resource: "bastions", kind: relation.Bastion,
			path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, namespace: shootNamespace, selectors: ownShootField("spec.shootRef.name", "")},
		{id: "SH-4g", group: "certificates.k8s.io", version: "v1", resource: "certificatesigningrequests", kind: relation.CertificateSigningRequest,
			always: verbCreate, path: reads, subresources: []string{"shootclient"}, extension: &rule{id: "SH-4e", path: reads}},
		{id: "SH-5", version: "v1", resource: "configmaps", kind: relation.ConfigMap,
			always: verbCreate, path: reads | writes, referenced: true, exceptions: []exception{clusterIdentity, byShootName}},
		{id: "SH-6", group: core, version: "v1", resource: "controllerdeployments", kind: relation.ControllerDeployment, path: reads},
		{id: "SH-7", version: "v1", resource: "namespaces", kind: relation.Namespace, path: reads},
		{id: "SH-8", group: core, version: "v1beta1", resource: "projects", kind: relation.Project, path: reads},
		{id: "SH-9", group: core, version: "v1beta1", resource: "controllerinstallations", kind: relation.ControllerInstallation,
			path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, selectors: ownShootRef},
		{id: "SH-10", group: core, version: "v1beta1", resource: "controllerregistrations", kind: relation.ControllerRegistration, always: reads},
		{id: "SH-11", version: "v1", resource: "events", always: verbCreate | verbPatch, free: true},
		{id: "SH-11", group: "events.k8s.io", version: "v1", resource: "events", always: verbCreate | verbPatch, free: true},
		{id: "SH-12", group: seedManagement, version: "v1alpha1", resource: "gardenlets", kind: relation.Gardenlet,
			always: verbCreate, path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, namespace: shootNamespace,
			selectors: ownShootField("metadata.name", wellknown.SelfHostedShootPrefix)},
		{id: "SH-13", group: core, version: "v1beta1", resource: "internalsecrets", kind: relation.InternalSecret,
			always: verbCreate, path: reads | writes, referenced: true, exceptions: []exception{byShootName}},
		{id: "SH-14g", group: "coordination.k8s.io", version: "v1", resource: "leases", kind: relation.Lease,
			always: verbCreate, path: reads | verbUpdate | verbPatch, exceptions: []exception{byShootName},
			extension: &rule{id: "SH-14e", exceptions: []exception{leasesOfShootExtensions}}},
		{id: "SH-15", group: seedManagement, version: "v1alpha1", resource: "managedseeds", kind: relation.ManagedSeed,
			path: reads | verbUpdate | verbPatch, subresources: []string{"status"}, namespace: shootNamespace, selectors: ownShootField("spec.shoot.name", "")},
		{id: "SH-16", version: "v1", resource: "secrets", kind: relation.Secret,
			always: verbCreate, path: reads | writes, referenced: true, exceptions: []exception{issuersOfShoots, byShootName}, lookup: bootstrapTokens},
		{id: "SH-17", group: core, version: "v1beta1", resource: "seeds", kind: relation.Seed,
			always: verbList | verbWatch, path: verbGet | verbDelete, exceptions: []exception{seedOfShoot}},
		{id: "SH-18g", version: "v1", resource: "serviceaccounts", kind: relation.ServiceAccount,
			always: verbCreate, path: verbGet | verbUpdate | verbPatch, exceptions: []exception{extensionsOfShoot},
			extension: &rule{id: "SH-18e", path: verbGet}},
		{id: "SH-19", group: core, version: "v1beta1", resource: "shoots", kind: relation.Shoot,
			path: verbUpdate | verbPatch, subresources: []string{"status"}, exceptions: []exception{itself}},
		{id: "SH-20", group: core, version: "v1beta1", resource: "shootstates", kind: relation.ShootState,
			always: verbCreate, path: reads | verbPatch, exceptions: []exception{byShootName}},
		{id: "SH-21", group: security, version: "v1alpha1", resource: "workloadidentities", kind: relation.WorkloadIdentity,
			path: reads | verbCreate | verbPatch, subresources: []string{"token"}},
	})
	t.before = beforeShootTable
	t.counts, t.countsIf = ofSelfHostedShoot, "no self-hosted Shoot of that name is known, or no ControllerInstallation of the Shoot with the extension's name"
	return t
}

// ofSelfHostedShoot implements SHI-3. Members of a project choose the names of ServiceAccounts and of Shoots, but can
// neither create a ControllerInstallation nor make a Shoot self-hosted. gardenadm counts even before the Shoot
// exists, because it creates the Shoot. A Shoot that only the graph for seeds has is not self-hosted.
func ofSelfHostedShoot(a *Authorizer, c *client) bool {
	exists := a.seeds.Graph.Check(c.sink, c.sink).Watched // Checked first, because this graph gets a Shoot last.
	switch selfHosted := a.Graph.Check(c.sink, c.sink).Watched; c.Type {
	case identity.Gardenadm:
		return selfHosted || !exists
	case identity.Extension:
		return selfHosted && a.Graph.Check(c.installation, c.sink).Reached
	default:
		return selfHosted
	}
}

func shootNamespace(c *client) string { return c.Namespace }

// ownShootRef selects by reference to the shoot, with name and namespace together, because either alone would select
// objects of other shoots (B-7).
var ownShootRef = []selector{{
	keys:   []string{"spec.shootRef.name", "spec.shootRef.namespace"},
	fields: func(c *client) []string { return []string{c.Shoot, c.Namespace} },
}}

func ownShootField(field, prefix string) []selector {
	return []selector{{keys: []string{field}, fields: func(c *client) []string { return []string{prefix + c.Shoot} }}}
}

// The exceptions for self-hosted shoots.
var (
	byShootName = exception{"SH-0", "by path: what belongs to the own Shoot by its name", func(q *request) (decision, bool) {
		r := q.authorizer.table.ruleFor(q.attributes.GetAPIGroup(), q.attributes.GetResource(), q.client.Type)
		return q.allowIf(r.path.has(q.verb) && r.allowsSubresource(q.subresource) && q.belongsByName(r.kind), "SH-0")
	}}
	leasesOfShootExtensions = exception{"SH-14e", "everything in the shoot's namespace for names that start with <shoot>--; create, list, watch also without a name", func(q *request) (decision, bool) {
		switch {
		case q.namespace != q.client.Namespace:
			return q.noOpinion("SH-14e", "lease object is not in shoot namespace"), true
		case q.name != "" && !strings.HasPrefix(q.name, q.client.Shoot+"--"):
			return q.noOpinion("SH-14e", "lease object name does not have the shoot name as prefix"), true
		case q.verb&all == 0:
			return q.noOpinion("SH-14e", verbsAllowed+list(all.names(), false)), true
		case q.name == "" && !q.verb.has(nameless): // The namespace also has Leases of other Shoots.
			return q.noOpinion("SH-14e", noName), true
		}
		return q.allow("SH-14e"), true
	}}
	issuersOfShoots = exception{"SH-16a", "list and watch in namespace garden with label " + wellknown.Role + "=" + wellknown.RoleIssuer + ", for gardenlets", func(q *request) (decision, bool) {
		if q.client.Type != identity.Gardenlet || q.namespace != wellknown.Garden || q.name != "" || !q.verb.has(verbList|verbWatch) {
			return decision{}, false
		}
		return q.allowIf(q.selectsLabel(ownLabel{key: wellknown.Role, value: wellknown.RoleIssuer}), "SH-16a")
	}}
	seedOfShoot = exception{"SH-17a", "get, list, watch without a name or of the Seed with the shoot's name", func(q *request) (decision, bool) {
		return q.allowIf(q.verb.has(reads) && q.subresource == "" && (q.name == "" || q.name == q.client.Shoot), "SH-17a")
	}}
	extensionsOfShoot = exception{"SH-18a", "everything in the shoot's namespace for names that start with " + wellknown.ExtensionOfShootPrefix + "<shoot>--", func(q *request) (decision, bool) {
		return q.allowIf(q.namespace == q.client.Namespace && strings.HasPrefix(q.name, wellknown.ExtensionOfShootPrefix+q.client.Shoot+"--"), "SH-18a")
	}}
	itself = exception{"SH-19a", "get, list, watch of the own Shoot", func(q *request) (decision, bool) {
		return q.allowIf(q.verb.has(reads) && q.subresource == "" && q.namespace == q.client.Namespace && q.name == q.client.Shoot, "SH-19a")
	}}
)

// belongsByName reports whether an object belongs to the client's Shoot by its name (GE-53 to GE-56, and the Lease of the gardenlet).
func (q *request) belongsByName(kind graph.Kind) bool {
	if q.namespace != q.client.Namespace {
		return false
	}
	suffixes := map[graph.Kind][]string{
		relation.Secret: wellknown.ShootSecrets, relation.InternalSecret: wellknown.ShootInternalSecrets, relation.ConfigMap: wellknown.ShootConfigMaps,
	}[kind]
	switch kind {
	case relation.ShootState:
		return q.name == q.client.Shoot
	case relation.Lease:
		return q.name == wellknown.SelfHostedShootPrefix+q.client.Shoot
	}
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return q.name == q.client.Shoot+suffix })
}

const shootTokenLead = "Used for connecting the self-hosted Shoot "

// bootstrapTokens decides about the tokens with which gardenlets start. A client may read them under the name that
// follows from the shoot's name, and delete them if their description names the client: the name has only 24 bits,
// which another Shoot may share. Extensions have no such tokens.
func bootstrapTokens(ctx context.Context, q *request) (decision, bool, error) {
	if q.namespace != wellknown.KubeSystem || !strings.HasPrefix(q.name, wellknown.BootstrapTokenPrefix) {
		return decision{}, false, nil
	}
	expected := wellknown.BootstrapTokenSecret(q.client.Namespace, q.client.Shoot)
	switch {
	case q.verb.has(reads) && q.name != expected:
		return q.noOpinion("SH-16b", fmt.Sprintf("bootstrap token secret name %s does not match expected name %s for shoot %s", q.name, expected, q.client.name)), true, nil
	case q.client.Type != identity.Gardenlet:
		return q.noOpinion("SH-16b", "only the gardenlet of a shoot needs a bootstrap token"), true, nil
	case q.verb.has(reads) && q.subresource == "":
		return q.ownToken(ctx, "SH-16b")
	case q.verb == verbDelete && q.subresource == "":
		return q.ownToken(ctx, "SH-16c")
	}
	return decision{}, false, nil
}

const unreadToken = "there were too many requests to look the token's description up"

// ownToken compares the description of a token with the client.
func (q *request) ownToken(ctx context.Context, step string) (decision, bool, error) {
	reading := q.verb.has(reads)
	switch {
	case !q.live && reading:
		return decision{allowed: true, step: step, reason: "if the token's description names the shoot"}, true, nil
	case !q.live:
		return decision{}, false, nil
	case q.authorizer.Live == nil:
		return q.noOpinion(step, unreadToken), reading, nil
	}
	var secret *corev1.Secret
	err := q.lookUp(ctx, q.client.sink, func(ctx context.Context) (err error) {
		secret, err = q.authorizer.Live.Secret(ctx, q.namespace, q.name)
		return err
	})
	switch {
	case errors.Is(err, ratelimit.ErrRefused):
		q.authorizer.Metrics.live(outcomeLimited)
		return q.noOpinion(step, unreadToken), reading, nil
	case err != nil:
		return decision{}, false, err
	case secret == nil && reading:
		return q.allow(step), true, nil // The client gets its 404, an empty list, or a watch of the token that it is about to create (T4-11).
	case secret == nil:
		return q.noOpinion(step, "there is no such bootstrap token"), false, nil
	}
	namespace, shoot, known := shootOfDescription(string(secret.Data["description"]))
	switch {
	case known && namespace == q.client.Namespace && shoot == q.client.Shoot, reading && q.isOfOwnManagedSeed(string(secret.Data["description"])):
		return q.allow(step), true, nil
	case !known && !reading:
		return decision{}, false, nil
	}
	return q.noOpinion(step, fmt.Sprintf("shoot meta in bootstrap token secret %s/%s does not match with identity of requestor %s", q.namespace, q.name, q.client.name)), true, nil
}

// isOfOwnManagedSeed reports whether a token is for a ManagedSeed of the client's Shoot. The Shoot's gardenlet
// deploys the gardenlet of that seed, and reads a token before it creates one. The ManagedSeed usually has the
// Shoot's name, so that their tokens have the same name.
func (q *request) isOfOwnManagedSeed(description string) bool {
	kind, namespace, name := wellknown.ParseBootstrapDescription(description)
	leads := func(kind graph.Kind, namespace, name string) bool {
		return q.authorizer.Graph.Check(graph.Vertex{Kind: kind, Namespace: namespace, Name: name}, q.client.sink).Reached
	}
	return kind == "ManagedSeed" && q.name == wellknown.BootstrapTokenSecret(namespace, name) &&
		leads(relation.ManagedSeed, namespace, name) && leads(relation.Secret, q.namespace, q.name)
}

func shootOfDescription(text string) (namespace, shoot string, known bool) {
	if rest, found := strings.CutPrefix(text, shootTokenLead); found {
		rest, _, _ = strings.Cut(rest, " ")
		namespace, shoot, known = strings.Cut(rest, "/")
		return namespace, strings.TrimSuffix(shoot, "."), known
	}
	kind, namespace, name := wellknown.ParseBootstrapDescription(text)
	shoot, found := strings.CutPrefix(name, wellknown.SelfHostedShootPrefix)
	if !found {
		shoot = "" // The Gardenlet of a seed does not belong to a Shoot, whatever its name is.
	}
	return namespace, shoot, kind == "Gardenlet"
}

// beforeShootTable decides about gardenadm, and passes the requests of extensions of a shoot that is a seed to the
// SeedAuthorizer.
func beforeShootTable(ctx context.Context, q *request) (decision, bool, error) {
	a, c, attributes := q.authorizer, &q.client, q.attributes
	if c.Type == identity.Gardenadm {
		return decision{allowed: gardenadmMay(c, attributes), step: "SH-22"}, true, nil
	}
	// A Seed may have the Shoot's name and be another cluster: only a ManagedSeed of this Shoot proves that the Shoot
	// is the Seed (GE-24, GE-25).
	if c.Type != identity.Extension || c.Namespace != wellknown.Garden || a.seeds == nil || !a.Graph.Check(relation.SeedVertex(c.Shoot), c.sink).Reached {
		return decision{}, false, nil
	}
	namespace := wellknown.SeedNamespace(c.Shoot)
	answer, _, err := a.seeds.authorize(ctx, delegated{attributes, &user.DefaultInfo{
		Name:   "system:serviceaccount:" + namespace + ":extension-delegated",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}}, q.asking)
	if err != nil {
		return decision{step: "SH-23"}, true, fmt.Errorf("failed delegating request: %w", err)
	}
	return decision{allowed: true, step: "SH-23"}, answer == authorizer.DecisionAllow, nil
}

// delegated is a request in the name of an extension of a seed.
type delegated struct {
	authorizer.Attributes
	user user.Info
}

func (d delegated) GetUser() user.Info { return d.user }

// gardenadmRules are the rights of gardenadm, the tool that sets up a self-hosted shoot.
var gardenadmRules = []struct {
	group, resource, subresource string
	verbs                        []string
	of                           gardenadmScope
}{
	{core, "cloudprofiles", "", []string{"get"}, ofGarden},
	{core, "controllerdeployments", "", []string{"get"}, ofGarden},
	{core, "controllerregistrations", "", []string{"get"}, ofGarden},
	{core, "projects", "", []string{"create"}, ofGarden},
	{"", "configmaps", "", []string{"create"}, ofNamespace},
	{"", "secrets", "", []string{"create"}, ofNamespace},
	{core, "secretbindings", "", []string{"create"}, ofNamespace},
	{security, "credentialsbindings", "", []string{"create"}, ofNamespace},
	{security, "workloadidentities", "", []string{"create"}, ofNamespace},
	{core, "shoots", "", []string{"create", "patch", "mark-self-hosted"}, ofItself},
	{core, "shoots", "status", []string{"patch"}, ofItself},
}

// gardenadmScope selects the objects of a rule of gardenadm.
type gardenadmScope string

const (
	ofGarden    gardenadmScope = "any"
	ofNamespace gardenadmScope = "those in the shoot's namespace"
	ofItself    gardenadmScope = "the own Shoot"
)

func gardenadmMay(c *client, attributes authorizer.Attributes) bool {
	for _, r := range gardenadmRules {
		if r.group == attributes.GetAPIGroup() && r.resource == attributes.GetResource() && r.subresource == attributes.GetSubresource() &&
			slices.Contains(r.verbs, attributes.GetVerb()) && r.of.has(c, attributes) {
			return true
		}
	}
	return false
}

func (s gardenadmScope) has(c *client, attributes authorizer.Attributes) bool {
	inNamespace := attributes.GetNamespace() == c.Namespace
	switch s {
	case ofGarden:
		return true
	case ofNamespace:
		return inNamespace
	}
	// A create request has no name; ShootRestriction checks that of the object.
	return inNamespace && (attributes.GetName() == c.Shoot || attributes.GetName() == "" && attributes.GetVerb() == "create")
}
