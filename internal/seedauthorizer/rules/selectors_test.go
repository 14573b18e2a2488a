package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
	"github.com/espalier-project/espalier/test/must"
)

// labelRules are the rules that accept a label, by what is asked; the label stands for K and V in labelCases.
var labelRules = map[string]struct {
	question, key, value string
	// keyNamesClient says that other clients' objects do not have the key at all.
	keyNamesClient bool
}{
	"SR-18":               {"gardenlet %s managedseeds", "name.seed.gardener.cloud/seed", "true", true},
	"SR-18, extension":    {"extension %s managedseeds", "name.seed.gardener.cloud/seed", "true", true},
	"SR-24":               {"gardenlet %s seeds", "name.seed.gardener.cloud/seed", "true", true},
	"SR-26":               {"gardenlet %s shoots", "name.seed.gardener.cloud/seed", "true", true},
	"SR-26, in a project": {"gardenlet %s shoots n/", "name.seed.gardener.cloud/seed", "true", true},
	"SH-16a":              {"shoot-gardenlet %s secrets garden/", "gardener.cloud/role", "shoot-service-account-issuer", false},
}

// labelCases say of selectors whether they show the client's own objects only. "key" means: if the key itself names the client (T3-3).
var labelCases = map[string]struct{ selector, want string }{
	"the own value":                        {"K=V", "yes"},
	"the own value, ==":                    {"K==V", "yes"},
	"In with the own value":                {"K in (V)", "yes"},
	"Exists":                               {"K", "key"},
	"Exists, and something narrower":       {"K,foo=bar", "key"},
	"In with a foreign value":              {"K in (x)", "no"},
	"In with own and foreign values":       {"K in (V,x)", "no"},
	"a foreign value":                      {"K=x", "no"},
	"an empty value":                       {"K=", "no"},
	"a value that begins like it":          {"K=Vs", "no"},
	"NotIn":                                {"K notin (x)", "no"},
	"NotIn with the own value":             {"K notin (V)", "no"},
	"NotEquals":                            {"K!=x", "no"},
	"NotEquals to the own value":           {"K!=V", "no"},
	"DoesNotExist":                         {"!K", "no"},
	"another key, Exists":                  {"foo", "no"},
	"another key with the own value":       {"foo=V", "no"},
	"another key, DoesNotExist":            {"!foo", "no"},
	"a key that begins like it":            {"Ks=V", "no"},
	"nothing":                              {"", "no"},
	"several, own and narrower":            {"foo=bar,K=V,!baz,a notin (b)", "yes"},
	"several, Exists and the own value":    {"K,K=V", "yes"},
	"several, own and foreign values":      {"K in (V,x),K in (V,y)", "no"},
	"several, none of them own":            {"foo=bar,K!=x,!baz", "no"},
	"several, that allow no object at all": {"K=V,K=x", "yes"},
}

// TestLabelSelectors is SEL-4 for each rule with a label: B-7, T3-3.
func TestLabelSelectors(t *testing.T) {
	for id, rule := range labelRules {
		for name, c := range labelCases {
			want := c.want == "yes" || c.want == "key" && rule.keyNamesClient
			selector := strings.NewReplacer("K", rule.key, "V", rule.value).Replace(c.selector)
			t.Run("T3-3/SEL-4 "+id+"/"+name, func(t *testing.T) {
				requirements, err := labels.ParseToRequirements(selector)
				must.Succeed(t, err)
				for _, verb := range []string{"list", "watch"} {
					attributes := ask(t, fmt.Sprintf(rule.question, verb))
					attributes.LabelSelectorRequirements = requirements
					selects(t, attributes.User.GetName(), attributes.Verb, selector, decided(authorizerFor(rule.question), attributes), want)
				}
			})
		}
	}
}

// fieldRules are the rules that accept fields; each has the fields that are all needed, with the own value and foreign ones.
var fieldRules = map[string]struct {
	question string
	fields   []string
	own      []string
}{
	"SR-3":  {"gardenlet %s bastions", []string{"spec.seedName"}, []string{"seed"}},
	"SR-10": {"extension %s controllerinstallations", []string{"spec.seedRef.name"}, []string{"seed"}},
	"SR-17": {"gardenlet %s gardenlets garden/", []string{"metadata.name"}, []string{"seed"}},
	"SH-1":  {"shoot-gardenlet %s backupbuckets", []string{"spec.shootRef.name", "spec.shootRef.namespace"}, []string{"s", "n"}},
	"SH-2":  {"shoot-gardenlet %s backupentries", []string{"spec.shootRef.name", "spec.shootRef.namespace"}, []string{"s", "n"}},
	"SH-3":  {"shoot-gardenlet %s bastions n/", []string{"spec.shootRef.name"}, []string{"s"}},
	"SH-9":  {"shoot-extension %s controllerinstallations", []string{"spec.shootRef.name", "spec.shootRef.namespace"}, []string{"s", "garden-n"}},
	"SH-12": {"shoot-gardenlet %s gardenlets n/", []string{"metadata.name"}, []string{"self-hosted-shoot-s"}},
	"SH-15": {"shoot-gardenlet %s managedseeds n/", []string{"spec.shoot.name"}, []string{"s"}},
}

// fieldCases are about the first field K, with the own value V; what else the rule needs stands for REST.
var fieldCases = map[string]struct {
	selector string
	want     bool
}{
	"the own value":                        {"K=VREST", true},
	"the own value, ==":                    {"K==VREST", true},
	"a foreign value":                      {"K=xREST", false},
	"an empty value":                       {"K=REST", false},
	"a value that begins like it":          {"K=VsREST", false},
	"NotEquals":                            {"K!=xREST", false},
	"NotEquals to the own value":           {"K!=VREST", false},
	"another field with the own value":     {"spec.other=VREST", false},
	"a field that begins like it":          {"Ks=VREST", false},
	"nothing":                              {"", false},
	"several, own and narrower":            {"spec.x=y,K=V,spec.z!=wREST", true},
	"several, none of them own":            {"spec.x=y,K!=xREST", false},
	"several, that allow no object at all": {"K=V,K=xREST", true},
}

// TestFieldSelectors is SEL-3 for each rule with fields (B-7). API servers send "equals" and "not equals" only, with one value each.
func TestFieldSelectors(t *testing.T) {
	for id, rule := range fieldRules {
		rest := ""
		for i, field := range rule.fields[1:] {
			rest += "," + field + "=" + rule.own[1+i]
		}
		for name, c := range fieldCases {
			selector := strings.NewReplacer("K", rule.fields[0], "V", rule.own[0], "REST", rest).Replace(c.selector)
			t.Run(id+"/"+name, func(t *testing.T) { selectsFields(t, rule.question, selector, c.want) })
		}
		for i := range rule.fields { // One of several fields alone shows objects of others.
			if len(rule.fields) > 1 {
				t.Run(id+"/only "+rule.fields[i], func(t *testing.T) { selectsFields(t, rule.question, rule.fields[i]+"="+rule.own[i], false) })
			}
		}
	}
}

func selectsFields(t *testing.T, question, selector string, want bool) {
	t.Helper()
	parsed, err := fields.ParseSelector(selector)
	must.Succeed(t, err)
	for _, verb := range []string{"list", "watch"} {
		attributes := ask(t, fmt.Sprintf(question, verb))
		attributes.FieldSelectorRequirements = parsed.Requirements()
		selects(t, attributes.User.GetName(), attributes.Verb, selector, decided(authorizerFor(question), attributes), want)
	}
}

func authorizerFor(question string) *Authorizer {
	if bySelfHostedShoot(question) {
		return shootAuthorizer(&live{})
	}
	return ruled()
}

func selects(t *testing.T, who, verb, selector, got string, want bool) {
	t.Helper()
	if want && got != "allowed" || !want && !matches(got, "no opinion: must specify field or label selector for name ") {
		t.Errorf("%s %s with %q: got %s, want allowed: %v", who, verb, selector, got, want)
	}
}

// TestPropertyOfSelectors: what a selector shows is the client's, whichever requirements of whichever operators it has; and a requirement more, which only
// narrows the answer, takes nothing away.
func TestPropertyOfSelectors(t *testing.T) {
	allowed := 0
	authorizers := map[string]*Authorizer{}
	for id, rule := range labelRules {
		authorizers[id] = authorizerFor(rule.question)
	}
	ids := slices.Sorted(maps.Keys(labelRules))
	for seed := range property(10000) {
		g := gardengen.New(4_000_000 + seed)
		for _, id := range ids {
			rule := labelRules[id]
			requirements := labelSelector(g)
			for i := range requirements { // The seed of labelRules is another one than those of drawn gardens.
				requirements[i] = renamed(requirements[i], "name.seed.gardener.cloud/a", rule.key)
			}
			attributes := ask(t, fmt.Sprintf(rule.question, "list"))
			decide := func(r labels.Requirements) bool {
				attributes.LabelSelectorRequirements = r
				return decided(authorizers[id], attributes) == "allowed"
			}
			if !decide(requirements) {
				continue
			}
			allowed++
			for _, of := range labelledObjects(rule.key, rule.keyNamesClient) {
				must.False(t, labels.NewSelector().Add(requirements...).Matches(of),
					"B-7: seed %d: %s: %s shows an object with %v", seed, id, requirements, of)
			}
			if more := labelRequirement(g); more != nil && !decide(append(requirements, *more)) {
				t.Fatalf("SEL-4: seed %d: %s: %s is allowed, but not with %s", seed, id, requirements, more)
			}
		}
	}
	expect.True(t, allowed >= 1000, "only %d selectors were allowed", allowed)
}

// labelledObjects are labels of objects that are not the client's.
func labelledObjects(key string, keyNamesClient bool) (result []labels.Set) {
	for _, of := range []labels.Set{{}, {"foo": "1"}, {"foo": "true", "role": "true"}, {"name.seed.gardener.cloud/b": "true"}, {"name.seed.gardener.cloud/aa": "true"}} {
		for _, role := range []string{"", "monitoring", "true", "false", "1", "a", "shoot-service-account-issuers"} {
			set := labels.Set{"gardener.cloud/role": role}
			for k, v := range of {
				set[k] = v
			}
			if keyNamesClient || key == "gardener.cloud/role" {
				result = append(result, set, of)
			}
		}
	}
	return result
}

func renamed(r labels.Requirement, from, to string) labels.Requirement {
	if r.Key() != from {
		return r
	}
	same, err := labels.NewRequirement(to, r.Operator(), r.ValuesUnsorted())
	if err != nil {
		panic(err) // It was one before.
	}
	return *same
}
