package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// This is the contract's tables written down a second time (sections 2 to 5 and 8), and the steps that lead through them.

// naiveSeedTable is section 4.1: resource, kind, verbs that are always allowed, verbs by path, subresources, selector. S after the rule
// means that seeds read all under readScope All; e is the rule of extensions, g that of gardenlets.
const naiveSeedTable = `
backupbuckets.core.gardener.cloud | BackupBucket | create get list watch | update patch delete | status finalizers |
backupentries.core.gardener.cloud | BackupEntry | create get list watch | update patch delete | status |
bastions.operations.gardener.cloud | Bastion | create | get list watch update patch | status | field spec.seedName S
g certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | create | get list watch | seedclient |
e certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | | get list watch | |
cloudprofiles.core.gardener.cloud | CloudProfile | | get list watch | |
namespacedcloudprofiles.core.gardener.cloud | NamespacedCloudProfile | | get list watch | |
g clusterrolebindings.rbac.authorization.k8s.io | ClusterRoleBinding | create | get update patch | |
e clusterrolebindings.rbac.authorization.k8s.io | ClusterRoleBinding | | get | |
configmaps | ConfigMap | create | get update patch delete list watch | |
controllerdeployments.core.gardener.cloud | ControllerDeployment | | get list watch | |
controllerinstallations.core.gardener.cloud | ControllerInstallation | | get list watch update patch | status | field spec.seedRef.name S
controllerregistrations.core.gardener.cloud | ControllerRegistration | get list watch | | |
credentialsbindings.security.gardener.cloud | CredentialsBinding | | get list watch | |
events | - | create patch | | |
events.events.k8s.io | - | create patch | | |
exposureclasses.core.gardener.cloud | ExposureClass | | get list watch | |
internalsecrets.core.gardener.cloud | InternalSecret | create | get update patch delete list watch | |
g leases.coordination.k8s.io | Lease | create | get update patch list watch | |
e leases.coordination.k8s.io | Lease | | | |
gardenlets.seedmanagement.gardener.cloud | Gardenlet | create | get list watch update patch | status | field metadata.name S
managedseeds.seedmanagement.gardener.cloud | ManagedSeed | | get list watch update patch | status | label S
namespaces | Namespace | | get list watch | |
projects.core.gardener.cloud | Project | | get list watch | |
secretbindings.core.gardener.cloud | SecretBinding | | get list watch | |
secrets | Secret | create | get update patch delete | |
workloadidentities.security.gardener.cloud | WorkloadIdentity | | get list watch create patch | token |
seeds.core.gardener.cloud | Seed | create | get list watch update patch delete | status | label S
g serviceaccounts | ServiceAccount | create | get update patch | |
e serviceaccounts | ServiceAccount | | get | |
shoots.core.gardener.cloud | Shoot | | get list watch update patch | status finalizers | label S
shootstates.core.gardener.cloud | ShootState | create | get update patch delete list watch | |
`

// naiveShootTable is section 8.2.
const naiveShootTable = `
backupbuckets.core.gardener.cloud | BackupBucket | create | get list watch update patch delete | status finalizers | fields spec.shootRef
backupentries.core.gardener.cloud | BackupEntry | create | get list watch update patch delete | status | fields spec.shootRef
bastions.operations.gardener.cloud | Bastion | | get list watch update patch | status | field spec.shootRef.name N
g certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | create | get list watch | shootclient |
e certificatesigningrequests.certificates.k8s.io | CertificateSigningRequest | | get list watch | |
configmaps | ConfigMap | create | get patch update delete list watch | |
controllerdeployments.core.gardener.cloud | ControllerDeployment | | get list watch | |
namespaces | Namespace | | get list watch | |
projects.core.gardener.cloud | Project | | get list watch | |
controllerinstallations.core.gardener.cloud | ControllerInstallation | | get list watch update patch | status | fields spec.shootRef
controllerregistrations.core.gardener.cloud | ControllerRegistration | get list watch | | |
events | - | create patch | | |
events.events.k8s.io | - | create patch | | |
gardenlets.seedmanagement.gardener.cloud | Gardenlet | create | get list watch update patch | status | field metadata.name N
internalsecrets.core.gardener.cloud | InternalSecret | create | get update patch delete list watch | |
g leases.coordination.k8s.io | Lease | create | get update patch list watch | |
e leases.coordination.k8s.io | Lease | | | |
managedseeds.seedmanagement.gardener.cloud | ManagedSeed | | get list watch update patch | status | field spec.shoot.name N
secrets | Secret | create | get list watch patch update delete | |
seeds.core.gardener.cloud | Seed | list watch | get delete | |
g serviceaccounts | ServiceAccount | create | get patch update | |
e serviceaccounts | ServiceAccount | | get | |
shoots.core.gardener.cloud | Shoot | | update patch | status |
shootstates.core.gardener.cloud | ShootState | create | get list watch patch | |
workloadidentities.security.gardener.cloud | WorkloadIdentity | | get list watch create patch | token |
`

type naiveRule struct {
	kind                   string
	always, path, sub      []string
	selector               []string
	readsAll, ownNamespace bool
}

func naiveRules(table string) map[string]naiveRule {
	result := map[string]naiveRule{}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		r := naiveRule{kind: cells[1], always: strings.Fields(cells[2]), path: strings.Fields(cells[3]), sub: strings.Fields(cells[4]), selector: strings.Fields(cells[5])}
		if n := len(r.selector); n > 0 && r.selector[n-1] == "S" {
			r.readsAll, r.selector = true, r.selector[:n-1]
		} else if n > 0 && r.selector[n-1] == "N" {
			r.ownNamespace, r.selector = true, r.selector[:n-1]
		}
		for _, who := range []string{"g", "e"} {
			if rest, found := strings.CutPrefix(cells[0], "g "); found && who == "g" {
				result["g "+rest] = r
			} else if rest, found := strings.CutPrefix(cells[0], "e "); found && who == "e" {
				result["e "+rest] = r
			} else if !strings.Contains(cells[0], " ") {
				result[who+" "+cells[0]] = r
			}
		}
	}
	return result
}

var naiveSeedRules, naiveShootRules = naiveRules(naiveSeedTable), naiveRules(naiveShootTable)

func tokenID(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "--" + name))
	return hex.EncodeToString(sum[:])[:6]
}

var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func isName(text string) bool { return len(text) <= 253 && dnsName.MatchString(text) }

// naiveQuestion is what is asked, in plain texts.
type naiveQuestion struct {
	authorizer.AttributesRecord
	// who is g or e, of the seed or the shoot.
	who, seed, namespace, shoot string
}

// naiveSettings are those of the authorizers.
type naiveSettings struct{ readAll, owned, selectors bool }

func (q *naiveQuestion) is(verbs string) bool { return slices.Contains(strings.Fields(verbs), q.Verb) }

func (q *naiveQuestion) object() string { return q.Namespace + "/" + q.Name }

// seedClient is section 2.1.
func seedClient(user string, groups []string) (who, seed string) {
	if slices.Contains(groups, "gardener.cloud:system:seeds") {
		if seed, found := strings.CutPrefix(user, "gardener.cloud:system:seed:"); found && isName(seed) {
			return "g", seed
		}
		return "", ""
	}
	parts := strings.SplitN(user, ":", 4)
	if !slices.Contains(groups, "system:serviceaccounts") || len(parts) != 4 || parts[0] != "system" || parts[1] != "serviceaccount" || !slices.Contains(groups, "system:serviceaccounts:"+parts[2]) {
		return "", ""
	}
	if seed, found := strings.CutPrefix(parts[2], "seed-"); found && isName(seed) && strings.HasPrefix(parts[3], "extension-") {
		return "e", seed
	}
	return "", ""
}

// shootClient is section 8.1.
func shootClient(user string, groups []string) (who, namespace, shoot string) {
	if slices.Contains(groups, "gardener.cloud:system:shoots") {
		for prefix, who := range map[string]string{"gardener.cloud:system:shoot:": "g", "gardener.cloud:gardenadm:shoot:": "a"} {
			if rest, found := strings.CutPrefix(user, prefix); found {
				parts := strings.Split(rest, ":")
				if len(parts) == 2 && isName(parts[0]) && isName(parts[1]) {
					return who, parts[0], parts[1]
				}
			}
		}
		return "", "", ""
	}
	parts := strings.SplitN(user, ":", 4)
	if !slices.Contains(groups, "system:serviceaccounts") || len(parts) != 4 || parts[0] != "system" || parts[1] != "serviceaccount" || !slices.Contains(groups, "system:serviceaccounts:"+parts[2]) ||
		parts[2] != "garden" && !strings.HasPrefix(parts[2], "garden-") {
		return "", "", ""
	}
	rest, found := strings.CutPrefix(parts[3], "extension-shoot--")
	shoot, _, split := strings.Cut(rest, "--")
	if !found || !split || !isName(shoot) {
		return "", "", ""
	}
	return "e", parts[2], shoot
}

func resourceOf(a authorizer.AttributesRecord) string {
	if a.APIGroup == "" {
		return a.Resource
	}
	return a.Resource + "." + a.APIGroup
}

// naiveSeed is section 3: "A", or what the reason begins with.
func naiveSeed(g *naiveGraph, s naiveSettings, a authorizer.AttributesRecord) string {
	q := &naiveQuestion{AttributesRecord: a}
	if q.who, q.seed = seedClient(a.User.GetName(), a.User.GetGroups()); q.who == "" {
		return "" // SA-1
	}
	rule, known := naiveSeedRules[q.who+" "+resourceOf(a)]
	if !known {
		return "" // SA-3
	}
	if answer := q.seedSpecial(g, s); answer != "" {
		return answer // SA-4
	}
	return q.steps(g, s, rule, "Seed:"+q.seed, q.seed)
}

// seedSpecial is section 4.2, with D-4, C1 and the own Seed.
func (q *naiveQuestion) seedSpecial(g *naiveGraph, s naiveSettings) string {
	seedNamespace := q.Namespace == "seed-"+q.seed
	bootstrapper := "gardener.cloud:system:seed-bootstrapper:garden:"
	allowed := false
	switch resourceOf(q.AttributesRecord) {
	case "clusterrolebindings.rbac.authorization.k8s.io":
		allowed = q.who == "g" && q.is("delete") && (q.Name == bootstrapper+q.seed || q.Name == bootstrapper+"gardenlet-bootstrap-"+q.seed) // SP-1
	case "configmaps":
		allowed = q.is("get") && q.object() == "gardener-system-public/gardener-info" || // SP-2
			s.readAll && q.is("get list watch") && q.object() == "kube-system/cluster-identity" // D-4
	case "leases.coordination.k8s.io":
		if q.who == "e" { // SP-3
			switch {
			case !seedNamespace:
				return "lease object is not in seed namespace"
			case !q.is("create get list watch update patch delete deletecollection"):
				return "only the following verbs"
			}
			return "A"
		}
		allowed = s.readAll && q.Name == "gardenlet-leader-election" && q.is("create get list watch update") || // SP-3b, D-5
			q.is("delete") && q.object() == "gardener-system-seed-lease/"+q.seed // C1
	case "namespaces":
		allowed = s.readAll && q.Name == "garden" && q.is("get list watch") // SP-4
	case "secrets":
		allowed = q.is("get list watch") && seedNamespace || // SP-5
			q.is("delete") && q.object() == "kube-system/bootstrap-token-"+tokenID("garden", q.seed) // SP-6
		ofBootstrapAccount := slices.ContainsFunc(g.out[v("Secret", q.Namespace, q.Name)], func(e naiveEdge) bool { return strings.HasPrefix(e.to, "ServiceAccount:") })
		if !allowed && q.who == "e" && (strings.HasPrefix(q.object(), "kube-system/bootstrap-token-") || ofBootstrapAccount) { // SP-11
			return "only the gardenlet of a seed needs a bootstrap token"
		}
	case "serviceaccounts":
		allowed = q.who == "g" && (q.is("delete") && q.object() == "garden/gardenlet-bootstrap-"+q.seed || seedNamespace) // SP-7, SP-8
	case "shoots.core.gardener.cloud":
		allowed = q.is("get") && q.object() == "garden/"+q.seed // SP-9
	case "seeds.core.gardener.cloud":
		allowed = s.readAll && q.is("get list watch") && q.Name == q.seed && q.Subresource == ""
	}
	if allowed {
		return "A"
	}
	return ""
}

// steps are SA-5 to SA-14.
func (q *naiveQuestion) steps(g *naiveGraph, s naiveSettings, rule naiveRule, sink, label string) string {
	always := slices.Clone(rule.always)
	readsAll := rule.readsAll && s.readAll
	if readsAll {
		always = append(always, "get", "list", "watch") // D-1
	}
	wrongNamespace := rule.ownNamespace && q.Namespace != q.namespace
	if rule.kind == "Gardenlet" && q.seed != "" {
		wrongNamespace = q.Namespace != "garden" && (!readsAll || !q.is("get list watch")) // D-2
	}
	switch {
	case wrongNamespace:
		return "only the following namespaces" // SA-5
	case rule.kind == "-" && !slices.Contains(always, q.Verb):
		return "only the following verbs" // SR-13
	case q.Subresource != "" && !slices.Contains(rule.sub, q.Subresource):
		sort.Strings(rule.sub)
		return "only the following subresources are allowed for this resource type: [" + strings.Join(rule.sub, " ") + "]" // SA-6
	case slices.Contains(always, q.Verb):
		return "A" // SA-7
	case !slices.Contains(rule.path, q.Verb):
		return "only the following verbs" // SA-8
	}
	byName := len(rule.selector) == 2 && rule.selector[1] == "metadata.name"
	if q.is("list watch") && (q.Name == "" || byName) { // SA-9
		switch {
		case s.selectors && q.selects(rule):
			return "A" // SEL-3, SEL-4
		case s.selectors:
			return "must specify field or label selector for name " + label // SEL-2
		case len(rule.selector) > 0:
			return "A" // SEL-7
		}
	}
	if q.Name == "" {
		return "No Object name found" // SA-10
	}
	vertex := v(rule.kind, q.Namespace, q.Name) // SA-11
	if rule.kind == "Namespace" {
		vertex = v(rule.kind, "", q.Name)
	}
	reaches, owned := g.leads(vertex, sink), g.owned(vertex, sink)
	if shoot, found := strings.CutSuffix(q.Name, ".kubeconfig"); found && rule.kind == "Secret" && !g.known[vertex] {
		reaches = g.leads(v("Shoot", q.Namespace, shoot), sink)
		owned = reaches
	}
	referred := slices.Contains([]string{"ConfigMap", "Secret", "InternalSecret"}, rule.kind)
	if reaches && (!s.owned || !referred || !q.is("update patch delete") || owned) {
		return "A" // SA-13
	}
	return "no relationship found" // SA-14
}

// selects is SEL-3 and SEL-4, with B-7 and T3-3.
func (q *naiveQuestion) selects(rule naiveRule) bool {
	if len(rule.selector) == 0 {
		return false
	}
	if rule.selector[0] == "label" {
		return q.selectsByLabel("name.seed.gardener.cloud/"+q.seed, "true", true)
	}
	wanted := map[string]string{}
	switch {
	case rule.selector[0] == "fields":
		wanted[rule.selector[1]+".name"], wanted[rule.selector[1]+".namespace"] = q.shoot, q.namespace
	case q.seed != "":
		wanted[rule.selector[1]] = q.seed
	case rule.kind == "Gardenlet":
		wanted[rule.selector[1]] = "self-hosted-shoot-" + q.shoot
	default:
		wanted[rule.selector[1]] = q.shoot
	}
	for field, own := range wanted {
		if !q.selectsByField(field, own) {
			return false
		}
	}
	return true
}

// others are values that objects of other clients have.
var others = []string{"", "another", "a", "b", "s", "t", "true", "false", "shoot-service-account-issuer"}

// selectsByField: there is a requirement that the own value meets, and no other value does.
func (q *naiveQuestion) selectsByField(field, own string) bool {
	return slices.ContainsFunc(q.FieldSelectorRequirements, func(r fields.Requirement) bool {
		wantsEqual := r.Operator != selection.NotEquals && r.Operator != selection.NotIn
		meets := func(value string) bool { return r.Field == field && (value == r.Value) == wantsEqual }
		return meets(own) && !slices.ContainsFunc(others, func(other string) bool { return other != own && meets(other) })
	})
}

// selectsByLabel: there is a requirement that objects with the own label meet, and no others do. Where others do not have the key at all, a requirement
// that any value meets is such a one, too.
func (q *naiveQuestion) selectsByLabel(key, own string, othersLackKey bool) bool {
	return slices.ContainsFunc(q.LabelSelectorRequirements, func(r labels.Requirement) bool {
		met, asked := 0, 0
		for _, other := range append(r.ValuesUnsorted(), others...) {
			if other != own {
				asked++
				if r.Matches(labels.Set{key: other}) {
					met++
				}
			}
		}
		return r.Matches(labels.Set{key: own}) && !r.Matches(labels.Set{}) && (met == 0 || othersLackKey && met == asked)
	})
}

// naiveShoot is section 8.2, with seeds for those that are delegated.
func naiveShoot(g, seeds *naiveGraph, s naiveSettings, a authorizer.AttributesRecord) string {
	q := &naiveQuestion{AttributesRecord: a}
	q.who, q.namespace, q.shoot = shootClient(a.User.GetName(), a.User.GetGroups())
	switch {
	case q.who == "" || !q.counts(g, seeds):
		return ""
	case q.who == "a":
		return q.gardenadm()
	case q.who == "e" && q.namespace == "garden" && g.leads("Seed:"+q.shoot, "Shoot:garden/"+q.shoot):
		delegated := &naiveQuestion{AttributesRecord: a, who: "e", seed: q.shoot}
		if rule, known := naiveSeedRules["e "+resourceOf(a)]; known {
			answer := delegated.seedSpecial(seeds, s)
			if answer == "" {
				answer = delegated.steps(seeds, s, rule, "Seed:"+q.shoot, q.shoot)
			}
			if answer == "A" {
				return "A"
			}
		}
	}
	rule, known := naiveShootRules[q.who+" "+resourceOf(a)]
	if !known {
		return ""
	}
	if answer := q.shootSpecial(g, s, rule); answer != "" {
		return answer
	}
	s.owned, s.readAll = false, false
	return q.steps(g, s, rule, v("Shoot", q.namespace, q.shoot), q.namespace+"/"+q.shoot)
}

// counts is SHI-3.
func (q *naiveQuestion) counts(g, seeds *naiveGraph) bool {
	shoot := v("Shoot", q.namespace, q.shoot)
	_, installation, _ := strings.Cut(q.User.GetName(), ":extension-shoot--"+q.shoot+"--")
	switch q.who {
	case "a":
		return g.watched[shoot] || !seeds.watched[shoot]
	case "e":
		return g.watched[shoot] && g.leads(v("ControllerInstallation", "", installation), shoot)
	}
	return g.watched[shoot]
}

func (q *naiveQuestion) shootSpecial(g *naiveGraph, s naiveSettings, rule naiveRule) string {
	own, reads := q.Namespace == q.namespace, q.is("get list watch")
	// Objects that belong to the Shoot by their name have no edge in this graph; the name says it, while the Shoot is there.
	byName := map[string][]string{
		"ConfigMap": {q.shoot + ".ca-cluster", q.shoot + ".ca-kubelet"}, "InternalSecret": {q.shoot + ".ca-client"}, "ShootState": {q.shoot}, "Lease": {"self-hosted-shoot-" + q.shoot},
		"Secret": {q.shoot + ".ca-cluster", q.shoot + ".ssh-keypair", q.shoot + ".ssh-keypair.old", q.shoot + ".monitoring"},
	}
	allowed := own && slices.Contains(byName[rule.kind], q.Name) && slices.Contains(rule.path, q.Verb) && (q.Subresource == "" || slices.Contains(rule.sub, q.Subresource)) && g.watched[v("Shoot", q.namespace, q.shoot)]
	switch resourceOf(q.AttributesRecord) {
	case "configmaps":
		allowed = allowed || (s.readAll || g.watched[v("Shoot", q.namespace, q.shoot)]) && reads && q.object() == "kube-system/cluster-identity" // D-4
	case "leases.coordination.k8s.io":
		if q.who != "e" {
			break
		}
		switch {
		case !own:
			return "lease object is not in shoot namespace"
		case q.Name != "" && !strings.HasPrefix(q.Name, q.shoot+"--"):
			return "lease object name does not have the shoot name as prefix"
		case !q.is("create get list watch update patch delete deletecollection"):
			return "only the following verbs"
		case q.Name == "" && !q.is("create list watch"):
			return "No Object name found"
		}
		return "A"
	case "secrets":
		if q.who == "g" && q.Namespace == "garden" && q.Name == "" && q.is("list watch") {
			allowed = allowed || q.selectsByLabel("gardener.cloud/role", "shoot-service-account-issuer", false)
		}
		if !allowed && q.Namespace == "kube-system" && strings.HasPrefix(q.Name, "bootstrap-token-") {
			switch {
			case reads && q.Name != "bootstrap-token-"+tokenID(q.namespace, q.shoot):
				return "bootstrap token secret name "
			case q.who == "e":
				return "only the gardenlet"
			case reads && q.Subresource == "":
				return "there were too many requests" // Nothing is looked up here.
			}
		}
	case "seeds.core.gardener.cloud":
		allowed = reads && q.Subresource == "" && (q.Name == "" || q.Name == q.shoot)
	case "serviceaccounts":
		allowed = q.who == "g" && own && strings.HasPrefix(q.Name, "extension-shoot--"+q.shoot+"--")
	case "shoots.core.gardener.cloud":
		allowed = reads && q.Subresource == "" && own && q.Name == q.shoot
	}
	if allowed {
		return "A"
	}
	return ""
}

func (q *naiveQuestion) gardenadm() string {
	own, allowed := q.Namespace == q.namespace, false
	switch resourceOf(q.AttributesRecord) {
	case "cloudprofiles.core.gardener.cloud", "controllerdeployments.core.gardener.cloud", "controllerregistrations.core.gardener.cloud":
		allowed = q.is("get") && q.Subresource == ""
	case "projects.core.gardener.cloud":
		allowed = q.is("create") && q.Subresource == ""
	case "configmaps", "secrets", "secretbindings.core.gardener.cloud", "credentialsbindings.security.gardener.cloud", "workloadidentities.security.gardener.cloud":
		allowed = q.is("create") && own && q.Subresource == ""
	case "shoots.core.gardener.cloud":
		itself := own && q.Name == q.shoot
		allowed = itself && (q.is("create patch mark-self-hosted") && q.Subresource == "" || q.is("patch") && q.Subresource == "status") ||
			own && q.Name == "" && q.is("create") && q.Subresource == ""
	}
	if allowed {
		return "A"
	}
	return ""
}
