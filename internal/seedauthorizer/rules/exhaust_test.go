package rules

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// smallAskers are all identities that a role of a small world lets somebody have, and some that nobody has.
var smallAskers = func() (result []*user.DefaultInfo) {
	add := func(name string, groups ...string) {
		result = append(result, &user.DefaultInfo{Name: name, Groups: groups})
	}
	account := func(namespace, name string) {
		add("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	for _, seed := range []string{"a", "child"} {
		add(wellknown.SeedUserPrefix+seed, wellknown.SeedsGroup)
		account("seed-"+seed, "extension-x")
	}
	for _, shoot := range []string{"garden:child", "garden-n:t", "garden:new"} {
		add(wellknown.ShootUserPrefix+shoot, wellknown.ShootsGroup)
		add(wellknown.GardenadmPrefix+shoot, wellknown.ShootsGroup)
	}
	account(wellknown.Garden, "extension-shoot--child--x")
	account(wellknown.Garden, "extension-shoot--child--t")
	account("garden-n", "extension-shoot--t--x")
	account("garden-n", "robot")
	return result
}()

// exhaustion asks in small worlds.
type exhaustion struct {
	t        *testing.T
	requests atomic.Int64
	allowed  atomic.Int64
}

// smallWorld is a small world to ask in: the rules, and the second reading.
type smallWorld struct {
	*world
	contract
}

func newSmallWorld(g smallGarden) *smallWorld {
	w := newWorld(gardengen.Now)
	w.seeds.Live, w.shoots.Live = nil, nil
	w.populate(g.objects)
	return &smallWorld{w, contract{seeds: newContractGraph("S", g.objects), shoots: newContractGraph("H", g.objects)}}
}

// setting sets the policy of both.
func (w *smallWorld) setting(bits int) {
	w.readAll, w.owned, w.selectors = bits&1 > 0, bits&2 > 0, bits&4 == 0
	for _, a := range []*Authorizer{w.world.seeds, w.world.shoots} {
		a.ReadAll, a.Selectors = w.readAll, selectors{possible: w.selectors}
	}
	w.world.seeds.WriteOwned = w.owned
}

// differs asks both, and reports whether they differ.
func (e *exhaustion) differs(w *smallWorld, q *authorizer.AttributesRecord) bool {
	a, want := w.world.seeds, false
	if who, _, _ := shootClient(q.User.GetName(), q.User.GetGroups()); who != "" {
		a, want = w.world.shoots, w.shoot(*q)
	} else {
		want = w.seed(*q)
	}
	decision, _, _ := a.Authorize(e.t.Context(), q)
	e.requests.Add(1)
	if want {
		e.allowed.Add(1)
	}
	return (decision == authorizer.DecisionAllow) != want
}

// ask asks about a vertex by every asker, verb, subresource, and policy, and returns the first difference.
func (e *exhaustion) ask(w *smallWorld, vertex string, settings int) (difference string) {
	questions := questionsAbout(vertex)
	for setting := range settings {
		w.setting(setting)
		for _, who := range smallAskers {
			for i := range questions {
				q := &questions[i]
				if q.User = who; e.differs(w, q) {
					return fmt.Sprintf("%s %s/%s %s by %s, policy %d", q.Verb, resourceOf(*q), q.Subresource, vertex, who.Name, setting)
				}
			}
		}
	}
	return ""
}

// questionsAbout are all requests about an object of a small world.
func questionsAbout(vertex string) (result []authorizer.AttributesRecord) {
	kind, at, _ := strings.Cut(vertex, ":")
	namespace, name, found := strings.Cut(at, "/")
	if !found || kind == "ClusterRoleBinding" {
		namespace, name = "", at
	}
	q := authorizer.AttributesRecord{ResourceRequest: true, Namespace: namespace, Name: name}
	q.Resource, q.APIGroup, _ = strings.Cut(resourceByKind[kind], ".")
	for _, subresource := range subresources[resourceByKind[kind]] {
		for _, verb := range smallVerbs {
			q.Subresource, q.Verb = subresource, verb
			result = append(result, q)
		}
	}
	return result
}

var smallVerbs = append(slices.Clone(verbNames), "mark-self-hosted", "foo")

// subresources of a resource in any rule, and one of none.
var subresources = func() map[string][]string {
	result := map[string][]string{}
	for _, rules := range contractRules {
		for key, rule := range rules {
			resource := key[2:]
			result[resource] = append(result[resource], append([]string{"", "foo"}, rule.sub...)...)
			slices.Sort(result[resource])
			result[resource] = slices.Compact(result[resource])
		}
	}
	return result
}()

// TestSmallWorlds: in each small world the rules decide as the second reading of the contract, for every identity, verb and subresource, about every object
// of the chain and every object that rules name.
func TestSmallWorlds(t *testing.T) {
	e := &exhaustion{t: t}
	all := sample(small{t}.gardens(), 400)
	queue := make(chan smallGarden)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for g := range queue {
				w := newSmallWorld(g)
				for _, vertex := range g.chain[min(1, len(g.chain)):] { // The sink is asked about in the bases.
					if difference := e.ask(w, vertex, 4); difference != "" {
						t.Errorf("SA-13: %v: %s", textsOf(g.objects), difference)
						break
					}
				}
			}
		})
	}
	for _, g := range all {
		queue <- g
	}
	close(queue)
	workers.Wait()
	for _, base := range (small{t}).bases() {
		w := newSmallWorld(smallGarden{objects: base})
		for _, vertex := range sample(smallVertices(), 7) {
			expect.Equal(t, e.ask(w, vertex, 8), "", "SA-4: %v", textsOf(base))
		}
	}
	t.Logf("%d gardens, %d requests, %d allowed", len(all), e.requests.Load(), e.allowed.Load())
}

func textsOf(objects []present) (result []string) {
	for _, o := range objects {
		result = append(result, relation.Schema.Names[o.kind]+jsonText(o.object))
	}
	return result
}

// smallVertices are the objects that rules name, and one without a name and with another one's of each kind.
func smallVertices() (result []string) {
	replace := strings.NewReplacer("garden-n/self-hosted-shoot-s", "garden/self-hosted-shoot-child", "garden-n/extension-shoot--s--", "garden/extension-shoot--child--", "garden-n/s", "garden/child")
	for _, object := range exceptionObjects {
		resource, at, _ := strings.Cut(object, " ")
		for kind, of := range resourceByKind {
			if of == resource {
				result = append(result, kind+":"+at, kind+":"+replace.Replace(at))
			}
		}
	}
	for kind := range resourceByKind {
		for _, at := range []string{"garden/", "garden-n/", "seed-a/", "kube-system/", "garden-n/t", "garden/child", "a", "child", "/"} {
			result = append(result, kind+":"+at)
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// TestSmallSelectors: lists and watches of several objects with every form of a selector.
func TestSmallSelectors(t *testing.T) {
	e := &exhaustion{t: t}
	for _, base := range (small{t}).bases()[:2] {
		w := newSmallWorld(smallGarden{objects: base})
		for _, form := range sample(selectorForms(), 97) {
			for kind, resource := range resourceByKind {
				if len(contractRules["seed"]["g "+resource].selector)+len(contractRules["shoot"]["g "+resource].selector) == 0 && kind != "Secret" && kind != "ConfigMap" {
					continue
				}
				q := &authorizer.AttributesRecord{ResourceRequest: true, FieldSelectorRequirements: form.fields, LabelSelectorRequirements: form.labels}
				q.Resource, q.APIGroup, _ = strings.Cut(resource, ".")
				for setting := range 8 {
					w.setting(setting &^ 2)
					for _, q.Namespace = range []string{"", "garden", "garden-n", "seed-a"} {
						for _, q.Verb = range []string{"list", "watch", "deletecollection"} {
							for _, who := range smallAskers {
								if q.User = who; e.differs(w, q) {
									t.Fatalf("SEL-2, B-7: %s %s in %q with %v %v by %s, policy %d", q.Verb, resource, q.Namespace, form.fields, form.labels, who.Name, setting)
								}
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests, %d allowed", e.requests.Load(), e.allowed.Load())
}

type selectorForm struct {
	fields fields.Requirements
	labels labels.Requirements
}

// selectorForms are all requirements of small worlds alone, and those of two fields that belong together.
func selectorForms() (result []selectorForm) {
	values := []string{"a", "child", "t", "garden", "garden-n", "self-hosted-shoot-child", ""}
	var ofFields []fields.Requirement
	for _, key := range []string{"spec.seedName", "spec.seedRef.name", "metadata.name", "spec.shootRef.name", "spec.shootRef.namespace", "spec.shoot.name", "other"} {
		for _, operator := range fieldOperators {
			for _, value := range values {
				ofFields = append(ofFields, fields.Requirement{Field: key, Operator: operator, Value: value})
			}
		}
	}
	for i, r := range ofFields {
		result = append(result, selectorForm{fields: fields.Requirements{r}})
		for _, other := range ofFields[i+1:] {
			if strings.HasPrefix(r.Field, "spec.shootRef") && strings.HasPrefix(other.Field, "spec.shootRef") && r.Field != other.Field {
				result = append(result, selectorForm{fields: fields.Requirements{r, other}})
			}
		}
	}
	for _, key := range []string{"name.seed.gardener.cloud/a", "name.seed.gardener.cloud/child", "gardener.cloud/role", "other"} {
		for _, operator := range labelOperators {
			for _, list := range [][]string{nil, {"true"}, {"false"}, {"1"}, {"shoot-service-account-issuer"}, {"true", "false"}, {"shoot-service-account-issuer", "other"}} {
				if r, err := labels.NewRequirement(key, operator, list); err == nil {
					result = append(result, selectorForm{labels: labels.Requirements{*r}})
				}
			}
		}
	}
	return result
}

// TestSmallWrites: no client reaches more by writing an object of a small world with any one reference, but over the edges of ownHand.
func TestSmallWrites(t *testing.T) {
	for _, checked := range []bool{false, true} {
		l := &ownHandProperty{t: t, checked: checked, used: map[string]bool{}, writes: map[string]int{}}
		for row := range ownHand {
			l.used[row] = true // TestPropertyOfOwnHand asks which of them are needed.
		}
		singles := sample((small{t}).singles(), 40)
		for _, base := range (small{t}).bases() {
			l.objects, l.world = base, newWorld(gardengen.Now)
			l.populate(base)
			for _, c := range l.clusters() {
				c.before = c.reached()
				for _, who := range c.clients {
					for _, s := range singles {
						watch := relation.WatchOf(s.kind)
						old := find(base, watch, watch.Owner(s.object))
						for _, part := range parts {
							if (part == created) == (old == nil) {
								l.write(c, who, watch, part, old, s.object)
							}
						}
					}
				}
			}
		}
		t.Logf("T3-4: %v", l.writes)
	}
}
