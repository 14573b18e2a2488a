package rules

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// leads reports whether a path exists; an edge that is direct counts as the first one only.
func (g *contractGraph) leads(from, to string) bool {
	result, asked := g.leading[[2]string{from, to}]
	if !asked {
		result = g.known[from] && g.known[to] && (from == to || slices.ContainsFunc(g.out[from], func(e [2]string) bool { return g.leadsOn(e[0], to, map[string]bool{}) }))
		g.leading[[2]string{from, to}] = result
	}
	return result
}

func (g *contractGraph) leadsOn(from, to string, seen map[string]bool) bool {
	seen[from] = true
	return from == to || slices.ContainsFunc(g.out[from], func(e [2]string) bool {
		return !strings.Contains(e[1], "direct") && !seen[e[0]] && g.leadsOn(e[0], to, seen)
	})
}

// manages reports whether a path exists whose first edge also gives the right to write (B-6).
func (g *contractGraph) manages(from, to string) bool {
	return slices.ContainsFunc(g.out[from], func(e [2]string) bool {
		return strings.Contains(e[1], "managed") && g.leadsOn(e[0], to, map[string]bool{})
	})
}

var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func isName(text string) bool { return len(text) <= 253 && dnsName.MatchString(text) }

// account returns the namespace and the name of a ServiceAccount with its groups, without parts for others.
func account(user string, groups []string) (namespace, name string) {
	parts := strings.SplitN(user, ":", 4)
	if slices.Contains(groups, "system:serviceaccounts") && len(parts) == 4 && parts[0]+parts[1] == "systemserviceaccount" && slices.Contains(groups, "system:serviceaccounts:"+parts[2]) {
		return parts[2], parts[3]
	}
	return "", ""
}

// seedClient is section 2.1: g or e, and the seed.
func seedClient(user string, groups []string) (who, seed string) {
	seed, found := strings.CutPrefix(user, "gardener.cloud:system:seed:")
	if who = "g"; !slices.Contains(groups, "gardener.cloud:system:seeds") {
		namespace, name := account(user, groups)
		seed, found = strings.CutPrefix(namespace, "seed-")
		who, found = "e", found && strings.HasPrefix(name, "extension-")
	}
	if !found || !isName(seed) {
		return "", ""
	}
	return who, seed
}

// shootClient is section 8.1: g, a or e, and the shoot.
func shootClient(user string, groups []string) (who, namespace, shoot string) {
	if slices.Contains(groups, "gardener.cloud:system:shoots") {
		for prefix, who := range map[string]string{"gardener.cloud:system:shoot:": "g", "gardener.cloud:gardenadm:shoot:": "a"} {
			if parts := strings.Split(strings.TrimPrefix(user, prefix), ":"); strings.HasPrefix(user, prefix) && len(parts) == 2 && isName(parts[0]) && isName(parts[1]) {
				return who, parts[0], parts[1]
			}
		}
		return "", "", ""
	}
	namespace, name := account(user, groups)
	rest, found := strings.CutPrefix(name, "extension-shoot--")
	shoot, _, split := strings.Cut(rest, "--")
	if !found || !split || !isName(shoot) || namespace != "garden" && !strings.HasPrefix(namespace, "garden-") {
		return "", "", ""
	}
	return "e", namespace, shoot
}

func resourceOf(a authorizer.AttributesRecord) string {
	return strings.TrimSuffix(a.Resource+"."+a.APIGroup, ".")
}

// contract is what both authorizers have to decide about a garden.
type contract struct {
	seeds, shoots             *contractGraph
	readAll, owned, selectors bool
}

// question is what is asked, and by whom.
type question struct {
	authorizer.AttributesRecord
	who, seed, ns, shoot string
}

func (q *question) is(verbs string) bool { return slices.Contains(strings.Fields(verbs), q.Verb) }
func (q *question) on(objects string) bool {
	return slices.Contains(strings.Fields(objects), q.Namespace+"/"+q.Name)
}
func (q *question) reads() bool { return q.is("get list watch") }

// seed is sections 3 and 4.
func (c *contract) seed(a authorizer.AttributesRecord) bool {
	q := &question{AttributesRecord: a}
	q.who, q.seed = seedClient(a.User.GetName(), a.User.GetGroups())
	return q.who != "" && c.seedRules(q)
}

func (c *contract) seedRules(q *question) bool {
	rule, known := contractRules["seed"][q.who+" "+resourceOf(q.AttributesRecord)]
	own, g, token := q.Namespace == "seed-"+q.seed, q.who == "g", "kube-system/bootstrap-token-"
	bootstrapper := "/gardener.cloud:system:seed-bootstrapper:garden:"
	exception := false
	switch rule.kind { // 4.2, D-4, C1, BH-SA-27
	case "ClusterRoleBinding":
		exception = g && q.is("delete") && q.on(bootstrapper+q.seed+" "+bootstrapper+"gardenlet-bootstrap-"+q.seed)
	case "ConfigMap":
		exception = q.is("get") && q.on("gardener-system-public/gardener-info") || c.readAll && q.reads() && q.on("kube-system/cluster-identity")
	case "Lease":
		if !g {
			return own && q.is("create get list watch update patch delete deletecollection")
		}
		exception = c.readAll && q.Name == "gardenlet-leader-election" && q.is("create get list watch update") || q.is("delete") && q.on("gardener-system-seed-lease/"+q.seed)
	case "Namespace":
		exception = c.readAll && q.Name == "garden" && q.reads()
	case "Secret":
		exception = own && q.reads() || q.is("delete") && q.on(token+tokenID("garden", q.seed))
		ofAccount := slices.ContainsFunc(c.seeds.out[v("Secret", q.Namespace, q.Name)], func(e [2]string) bool { return strings.HasPrefix(e[0], "ServiceAccount:") })
		if !exception && !g && (strings.HasPrefix(q.Namespace+"/"+q.Name, token) || ofAccount) {
			return false // SP-11
		}
	case "ServiceAccount":
		exception = g && (own || q.is("delete") && q.on("garden/gardenlet-bootstrap-"+q.seed))
	case "Shoot":
		exception = q.is("get") && q.on("garden/"+q.seed)
	case "Seed":
		exception = c.readAll && q.reads() && q.Name == q.seed && q.Subresource == ""
	}
	return known && (exception || c.steps(c.seeds, q, rule, v("Seed", "", q.seed), c.readAll, c.owned))
}

// shoot is section 8.2.
func (c *contract) shoot(a authorizer.AttributesRecord) bool {
	q := &question{AttributesRecord: a}
	q.who, q.ns, q.shoot = shootClient(a.User.GetName(), a.User.GetGroups())
	sink, own, itself := v("Shoot", q.ns, q.shoot), q.Namespace == q.ns, q.Namespace == q.ns && q.Name == q.shoot
	_, installation, _ := strings.Cut(a.User.GetName(), ":extension-shoot--"+q.shoot+"--")
	switch counts := c.shoots.watched[sink]; { // SHI-3
	case q.who == "", q.who == "g" && !counts, q.who == "e" && (!counts || !c.shoots.leads(v("ControllerInstallation", "", installation), sink)):
		return false
	case q.who == "a": // SH-22
		whole, patched := q.Subresource == "", itself && q.is("patch")
		return (counts || !c.seeds.watched[sink]) && map[string]bool{
			"cloudprofiles.core.gardener.cloud": whole && q.is("get"), "controllerdeployments.core.gardener.cloud": whole && q.is("get"), "controllerregistrations.core.gardener.cloud": whole && q.is("get"),
			"projects.core.gardener.cloud": whole && q.is("create"), "configmaps": whole && own && q.is("create"), "secrets": whole && own && q.is("create"),
			"secretbindings.core.gardener.cloud": whole && own && q.is("create"), "credentialsbindings.security.gardener.cloud": whole && own && q.is("create"),
			"workloadidentities.security.gardener.cloud": whole && own && q.is("create"),
			"shoots.core.gardener.cloud":                 whole && own && q.is("create") && (itself || q.Name == "") || whole && itself && q.is("mark-self-hosted") || patched && (whole || q.Subresource == "status"),
		}[resourceOf(a)]
	case q.who == "e" && q.ns == "garden" && c.shoots.leads("Seed:"+q.shoot, sink) && c.seedRules(&question{AttributesRecord: a, who: "e", seed: q.shoot}):
		return true // SH-23
	}
	rule, known := contractRules["shoot"][q.who+" "+resourceOf(a)]
	byName := map[string]string{ // SH-0
		"ConfigMap": ".ca-cluster .ca-kubelet", "InternalSecret": ".ca-client", "Secret": ".ca-cluster .ssh-keypair .ssh-keypair.old .monitoring",
	}[rule.kind]
	named := slices.ContainsFunc(strings.Fields(byName), func(suffix string) bool { return q.Name == q.shoot+suffix }) ||
		rule.kind == "ShootState" && itself || rule.kind == "Lease" && q.Name == "self-hosted-shoot-"+q.shoot
	exception := own && named && slices.Contains(rule.path, q.Verb) && (q.Subresource == "" || slices.Contains(rule.sub, q.Subresource))
	switch rule.kind {
	case "ConfigMap":
		exception = exception || q.reads() && q.on("kube-system/cluster-identity")
	case "Lease":
		if q.who == "e" {
			return own && (q.Name == "" && q.is("create list watch") || strings.HasPrefix(q.Name, q.shoot+"--") && q.is("create get list watch update patch delete deletecollection"))
		}
	case "Secret":
		if q.who == "g" && q.Namespace == "garden" && q.Name == "" && q.is("list watch") {
			exception = exception || q.selectsLabel("gardener.cloud/role", "shoot-service-account-issuer", false)
		}
		if !exception && q.Namespace == "kube-system" && strings.HasPrefix(q.Name, "bootstrap-token-") && (q.who == "e" || q.reads()) {
			return false // Nothing is looked up here.
		}
	case "Seed":
		exception = q.reads() && q.Subresource == "" && (q.Name == "" || q.Name == q.shoot)
	case "ServiceAccount":
		exception = q.who == "g" && own && strings.HasPrefix(q.Name, "extension-shoot--"+q.shoot+"--")
	case "Shoot":
		exception = q.reads() && q.Subresource == "" && itself
	}
	return known && (exception || c.steps(c.shoots, q, rule, sink, false, false))
}

// steps are SA-5 to SA-14.
func (c *contract) steps(g *contractGraph, q *question, rule contractRule, sink string, readAll, owned bool) bool {
	open := rule.readsAll && readAll && q.reads()
	always := slices.Contains(rule.always, q.Verb) || open
	switch {
	case rule.inNamespace && q.Namespace != q.ns, rule.kind == "Gardenlet" && q.seed != "" && q.Namespace != "garden" && !open:
		return false
	case q.Subresource != "" && !slices.Contains(rule.sub, q.Subresource):
		return false
	case always || !slices.Contains(rule.path, q.Verb):
		return always
	case q.is("list watch") && (q.Name == "" || slices.Contains(rule.selector, "metadata.name")):
		if c.selectors {
			return len(rule.selector) > 0 && q.selects(rule)
		} else if len(rule.selector) > 0 {
			return true
		}
	}
	vertex := v(rule.kind, q.Namespace, q.Name)
	if rule.kind == "Namespace" {
		vertex = v(rule.kind, "", q.Name)
	}
	reaches, manages := g.leads(vertex, sink), g.manages(vertex, sink)
	if shoot, found := strings.CutSuffix(q.Name, ".kubeconfig"); found && rule.kind == "Secret" && !g.known[vertex] { // 2.4
		reaches = g.leads(v("Shoot", q.Namespace, shoot), sink)
		manages = reaches
	}
	referred := slices.Contains([]string{"ConfigMap", "Secret", "InternalSecret"}, rule.kind)
	return q.Name != "" && reaches && (!owned || !referred || q.reads() || manages)
}

// selects is SEL-3 to SEL-5 with B-7: a requirement that all own objects meet, and no others.
func (q *question) selects(rule contractRule) bool {
	own := map[string]string{rule.selector[0]: q.seed + q.shoot}
	switch {
	case rule.selector[0] == "label":
		return q.selectsLabel("name.seed.gardener.cloud/"+q.seed, "true", true)
	case rule.selector[0] == "spec.shootRef":
		own = map[string]string{"spec.shootRef.name": q.shoot, "spec.shootRef.namespace": q.ns}
	case rule.kind == "Gardenlet" && q.seed == "":
		own = map[string]string{"metadata.name": "self-hosted-shoot-" + q.shoot}
	}
	for field, value := range own {
		if !slices.ContainsFunc(q.FieldSelectorRequirements, func(r fields.Requirement) bool {
			return r.Field == field && r.Value == value && r.Operator != selection.NotEquals && r.Operator != selection.NotIn
		}) {
			return false
		}
	}
	return true
}

func (q *question) selectsLabel(key, value string, namesClient bool) bool {
	others := []string{"", "another", "a", "b", "s", "t", "true", "false", "shoot-service-account-issuer"}
	return slices.ContainsFunc(q.LabelSelectorRequirements, func(r labels.Requirement) bool {
		met, asked := 0, 0
		for _, other := range append(r.ValuesUnsorted(), others...) {
			if other != value {
				asked++
				if r.Matches(labels.Set{key: other}) {
					met++
				}
			}
		}
		return r.Matches(labels.Set{key: value}) && !r.Matches(labels.Set{}) && (met == 0 || namesClient && met == asked)
	})
}
