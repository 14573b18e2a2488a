package rules

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// reviewsPerGarden are asked of each drawn garden.
const reviewsPerGarden = 500

// TestPropertyOfDifferential: on drawn gardens, whatever is asked by whomever, the decision is that of the contract's tables, read a second time
// (contract_test.go). `make properties` asks a million times and more.
func TestPropertyOfDifferential(t *testing.T) {
	reviews, allowed, byPath := 0, 0, 0
	for seed := range property(60) {
		g := gardengen.New(1_000_000 + seed)
		objects := draw(g, 5+g.IntN(20))
		w := newWorld(gardengen.Now)
		s := contract{
			readAll: g.IntN(2) == 0, owned: g.IntN(3) == 0, selectors: g.IntN(4) > 0, seeds: newContractGraph("S", objects), shoots: newContractGraph("H", objects),
		}
		for _, a := range []*Authorizer{w.seeds, w.shoots} {
			a.Live, a.ReadAll, a.Selectors = nil, s.readAll, selectors{possible: s.selectors}
		}
		w.seeds.WriteOwned = s.owned
		w.populate(objects)
		for range reviewsPerGarden {
			q := review(g, objects)
			asked, want := w.seeds, false
			if who, _, _ := shootClient(q.User.GetName(), q.User.GetGroups()); who != "" && g.IntN(20) > 0 {
				asked, want = w.shoots, s.shoot(q)
			} else {
				want = s.seed(q)
			}
			reviews++
			got := decided(asked, q)
			if (got == "allowed") != want {
				t.Fatalf("SA-1 to SA-14: seed %d: %s %s/%s %q %q by %s, selectors %v %v, policy %v %v %v: got %s, want allowed %v", seed, q.Verb, resourceOf(q), q.Subresource, q.Namespace,
					q.Name, q.User.GetName(), q.FieldSelectorRequirements, q.LabelSelectorRequirements, s.readAll, s.owned, s.selectors, got, want)
			}
			if got == "allowed" {
				allowed++
			}
			if strings.HasPrefix(got, "no opinion: no relationship") {
				byPath++
			}
		}
	}
	t.Logf("%d reviews, %d allowed, %d refused for want of a path", reviews, allowed, byPath)
	expect.True(t, allowed >= reviews/20 && byPath >= reviews/50, "the reviews say little")
}

// askers are users of all kinds, and some who look like one.
var askers = func() []*user.DefaultInfo {
	var result []*user.DefaultInfo
	add := func(name string, groups ...string) {
		result = append(result, &user.DefaultInfo{Name: name, Groups: groups})
	}
	for range 4 {
		for _, seed := range gardengen.Seeds {
			add("gardener.cloud:system:seed:"+seed, "gardener.cloud:system:seeds")
			add("system:serviceaccount:seed-"+seed+":extension-x", "system:serviceaccounts", "system:serviceaccounts:seed-"+seed)
		}
	}
	for range 8 {
		add("gardener.cloud:system:shoot:garden-n:s", "gardener.cloud:system:shoots")
		add("system:serviceaccount:garden-n:extension-shoot--s--x", "system:serviceaccounts", "system:serviceaccounts:garden-n")
	}
	add("gardener.cloud:system:shoot:garden:s", "gardener.cloud:system:shoots")
	for range 3 {
		add("gardener.cloud:gardenadm:shoot:garden-n:s", "gardener.cloud:system:shoots")
		add("system:serviceaccount:garden:extension-shoot--child--s", "system:serviceaccounts", "system:serviceaccounts:garden")
		add("gardener.cloud:system:shoot:garden:child", "gardener.cloud:system:shoots")
	}
	add("gardener.cloud:gardenadm:shoot:garden:a", "gardener.cloud:system:shoots")
	add("gardener.cloud:gardenadm:shoot:garden-n:s:t", "gardener.cloud:system:shoots")
	add("gardener.cloud:system:shoot:garden-n:", "gardener.cloud:system:shoots")
	add("gardener.cloud:system:seed:a", "gardener.cloud:system:shoots")
	add("gardener.cloud:system:shoot:garden-n:s", "gardener.cloud:system:seeds")
	add("system:serviceaccount:garden-n:extension-shoot--s--x", "system:serviceaccounts", "system:serviceaccounts:garden")
	add("system:serviceaccount:garden-n:extension-shoot--s", "system:serviceaccounts", "system:serviceaccounts:garden-n")
	add("system:serviceaccount:garden-n:extension-shoot----e", "system:serviceaccounts", "system:serviceaccounts:garden-n")
	add("system:serviceaccount:gardens:extension-shoot--s--x", "system:serviceaccounts", "system:serviceaccounts:gardens")
	add("system:serviceaccount:garden:extension-shoot--a--e", "system:serviceaccounts", "system:serviceaccounts:garden")
	add("gardener.cloud:system:seed:a", "system:authenticated")
	add("gardener.cloud:system:seed:<ambiguous>", "gardener.cloud:system:seeds")
	add("gardener.cloud:system:seed:", "gardener.cloud:system:seeds")
	add("gardener.cloud:system:shoot:garden-n:s:t", "gardener.cloud:system:shoots")
	add("system:serviceaccount:seed-a:bar", "system:serviceaccounts", "system:serviceaccounts:seed-a")
	add("system:serviceaccount:seed-a:extension-x", "system:serviceaccounts", "system:serviceaccounts:seed-b")
	add("extension-x", "system:serviceaccounts", "system:serviceaccounts:seed-a")
	add("system:serviceaccount:n:extension-shoot--s--x", "system:serviceaccounts", "system:serviceaccounts:n")
	return result
}()

// resources are those of the rules, twice, and some of no rule.
var resources = func() (result []string) {
	for resource := range contractRules["seed"] {
		result = append(result, resource[2:])
	}
	slices.Sort(result)
	return append(result, "quotas.core.gardener.cloud", "pods", "shoots")
}()

// verbsAsked are those of the table, and some that API servers ask about for other reasons.
var verbsAsked = append(slices.Clone(verbNames), "list", "watch", "foo", "mark-self-hosted", "impersonate", "*")

// resembling returns a name that begins or ends as another one.
func resembling(g gardengen.Gen, name string) string {
	return gardengen.One(g, []string{name + "s", name + "--x", name + ".", "x" + name, "-" + name, name[min(1, len(name)):], name[:max(0, len(name)-1)], strings.ToUpper(name)})
}

// review draws a question, mostly about what the objects of the garden have to do with.
func review(g gardengen.Gen, objects []present) authorizer.AttributesRecord {
	resource := gardengen.One(g, resources)
	a := authorizer.AttributesRecord{User: gardengen.One(g, askers), Verb: gardengen.One(g, verbsAsked), ResourceRequest: true}
	a.Resource, a.APIGroup, _ = strings.Cut(resource, ".")
	if g.IntN(6) == 0 {
		a.Subresource = gardengen.One(g, []string{"status", "finalizers", "token", "seedclient", "shootclient", "binding", "scale", "adminkubeconfig", "foo"})
	}
	v := gardengen.One(g, verticesOf(contractRules["seed"]["g "+resource].kind))
	a.Namespace, a.Name = v.Namespace, v.Name
	if len(objects) > 0 && g.IntN(2) == 0 {
		o := gardengen.One(g, objects)
		watch := relation.WatchOf(o.kind)
		self, edges, _ := watch.Contribute(o.object, noFacts{})
		for _, e := range append(edges, graph.Edge{From: self})[g.IntN(len(edges)+1):] {
			if resource := resourceByKind[relation.Schema.Names[e.From.Kind]]; resource != "" {
				a.Resource, a.APIGroup, _ = strings.Cut(resource, ".")
				a.Namespace, a.Name = e.From.Namespace, e.From.Name
				break
			}
		}
	}
	switch g.IntN(10) {
	case 0:
		a.Name = ""
	case 1:
		a.Namespace = gardengen.One(g, []string{"seed-a", "seed-b", "garden", "", "kube-system", "gardener-system-seed-lease", "garden-n"})
	case 2, 3, 4:
		resource, at, _ := strings.Cut(gardengen.One(g, exceptionObjects), " ")
		namespace, name, found := strings.Cut(at, "/")
		if !found {
			namespace, name = gardengen.One(g, []string{"", "garden", "garden-n"}), at
		}
		a.Resource, a.APIGroup, _ = strings.Cut(resource, ".")
		a.Namespace, a.Name = namespace, name
	}
	if a.Resource == "namespaces" && g.IntN(2) == 0 {
		a.Namespace = a.Name
	}
	if g.IntN(12) == 0 {
		a.Name = resembling(g, a.Name)
	}
	if g.IntN(20) == 0 {
		a.Namespace = resembling(g, a.Namespace)
	}
	if g.IntN(2) == 0 {
		a.FieldSelectorRequirements = fieldSelector(g)
		a.LabelSelectorRequirements = labelSelector(g)
	}
	return a
}

// exceptionObjects are those that rules name, and some that look like one.
var exceptionObjects = []string{
	"configmaps gardener-system-public/gardener-info", "configmaps kube-system/cluster-identity", "configmaps garden-n/s.ca-kubelet", "configmaps garden-n/t.ca-cluster",
	"leases.coordination.k8s.io gardenlet-leader-election", "leases.coordination.k8s.io gardener-system-seed-lease/a", "leases.coordination.k8s.io seed-a/x", "leases.coordination.k8s.io garden-n/s--x",
	"secrets n/x", "secrets garden/x", "secrets garden-n/x", "leases.coordination.k8s.io garden-n/self-hosted-shoot-s", "leases.coordination.k8s.io garden-n/t--x",
	"clusterrolebindings.rbac.authorization.k8s.io gardener.cloud:system:seed-bootstrapper:garden:a", "clusterrolebindings.rbac.authorization.k8s.io gardener.cloud:system:seed-bootstrapper:n:a",
	"clusterrolebindings.rbac.authorization.k8s.io gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-a",
	"serviceaccounts garden/gardenlet-bootstrap-a", "serviceaccounts seed-a/x", "serviceaccounts garden-n/", "leases.coordination.k8s.io garden-n/", "shoots.core.gardener.cloud garden-n/", "serviceaccounts garden-n/extension-shoot--s--x", "serviceaccounts garden-n/extension-shoot--t--e",
	"secrets seed-a/x", "secrets garden-n/s.kubeconfig", "secrets garden-n/s.ssh-keypair", "secrets garden-n/t.monitoring", "secrets kube-system/bootstrap-token-" + tokenID("garden", "a"),
	"secrets kube-system/bootstrap-token-" + tokenID("garden-n", "s"), "secrets kube-system/bootstrap-token-" + tokenID("garden", "child"), "secrets kube-system/bootstrap-token-" + tokenID("garden-n", "child"),
	"secrets garden/", "internalsecrets.core.gardener.cloud garden-n/s.ca-client", "shootstates.core.gardener.cloud garden-n/s", "namespaces garden/garden", "namespaces seed-a/seed-a",
	"seeds.core.gardener.cloud a", "seeds.core.gardener.cloud s", "shoots.core.gardener.cloud garden/a", "shoots.core.gardener.cloud garden-n/s", "gardenlets.seedmanagement.gardener.cloud garden/a",
	"gardenlets.seedmanagement.gardener.cloud garden-n/self-hosted-shoot-s",
}

var resourceByKind = func() map[string]string {
	result := map[string]string{}
	for resource, rule := range contractRules["seed"] {
		result[rule.kind] = resource[2:]
	}
	result["-"], result["--"] = "events", "events.events.k8s.io"
	return result
}()

var byKind = map[string][]graph.Vertex{}

func verticesOf(kind string) []graph.Vertex {
	if len(byKind) == 0 {
		for _, v := range universe {
			name := relation.Schema.Names[v.Kind]
			byKind[name] = append(byKind[name], v)
		}
	}
	if byKind[kind] == nil {
		return byKind["Secret"]
	}
	return byKind[kind]
}
