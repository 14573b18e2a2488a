package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// settings are a configuration on which facts depend in all ways that there are.
type settings struct {
	Mode     string `json:"mode,omitempty"`
	Machines struct {
		Enabled   bool    `json:"enabled"`
		Namespace *string `json:"namespace,omitempty"`
		Review    *bool   `json:"review,omitempty"`
	} `json:"machines"`
	Selector *struct {
		Name string `json:"name,omitempty"`
	} `json:"selector,omitempty"`
	Limits []limit `json:"limits,omitempty"`
}

type limit struct {
	Resources []string `json:"resources"`
	Count     *int     `json:"count,omitempty"`
}

type row = feature.Row[settings, struct{}]

// tried is how the facts of the settings are found out.
func tried() table[settings] {
	return table[settings]{
		setDefaults: func(s *settings) {
			if s.Machines.Review == nil {
				s.Machines.Review = ptr.To(true)
			}
		},
		prepare:  func(*settings) {},
		meanings: map[string][]string{"mode": {"all"}},
	}
}

func write(resource string, verbs ...string) feature.Write {
	return feature.Write{Cluster: feature.Target, Resource: resource, Verbs: verbs}
}

// TestRights: what a row may do always, unless a switch is off, where a field has one value, where one is set, where a section is there, and for
// each element of a list.
func TestRights(t *testing.T) {
	r := row{Name: "r", Switch: "machines.enabled", Writes: func(s *settings) []feature.Write {
		all := []feature.Write{write("always", "get")}
		if *s.Machines.Review {
			all = append(all, write("reviews", "create"))
		}
		if s.Mode == "all" {
			all = append(all, write("more", "list"))
		}
		if s.Machines.Namespace != nil {
			w := write("machines", "list")
			w.Namespace = *s.Machines.Namespace
			all = append(all, w)
		}
		if s.Selector != nil {
			all = append(all, write("selected", "patch"))
		}
		for _, l := range s.Limits {
			if l.Count != nil {
				all = append(all, write(l.Resources[0], "list"))
			}
		}
		return all
	}}
	type fact struct {
		When      []condition
		Each      *each
		Namespace string
		Rule      rbacv1.PolicyRule
	}
	got := map[string]fact{}
	for _, right := range rightsOf(tried(), r) {
		must.True(t, len(right.Rules) == 1 && right.Cluster == feature.Target, "got %+v", right)
		got[right.Rules[0].Resources[0]] = fact{right.When, right.Each, right.Namespace, right.Rules[0]}
	}
	rule := func(resource, verb string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}}
	}
	want := map[string]fact{
		"always":       {Rule: rule("always", "get")},
		"reviews":      {When: []condition{{Path: "machines.review", IsNot: []any{false}, Default: true}}, Rule: rule("reviews", "create")},
		"more":         {When: []condition{{Path: "mode", Is: []any{"all"}, Default: ""}}, Rule: rule("more", "list")},
		"machines":     {When: []condition{{Path: "machines.namespace"}}, Namespace: "$(machines.namespace)", Rule: rule("machines", "list")},
		"selected":     {When: []condition{{Path: "selector"}}, Rule: rule("selected", "patch")},
		"$(resources)": {Each: &each{List: "limits", Has: "count"}, Rule: rule("$(resources)", "list")},
	}
	expect.DeepEqual(t, got, want)
}

// TestHooks: entries of webhooks with the modes in which they are, and when; texts that installations decide about stand for themselves.
func TestHooks(t *testing.T) {
	r := row{
		Name: "h", Path: "/h",
		Mutating: func(s *settings, i feature.Installation) []admissionregistrationv1.MutatingWebhook {
			all := []admissionregistrationv1.MutatingWebhook{{Name: i.Prefix + "all", NamespaceSelector: i.Namespaces()}}
			if i.Garden {
				all = append(all, admissionregistrationv1.MutatingWebhook{Name: "garden"})
			}
			if s.Mode == "all" {
				all = append(all, admissionregistrationv1.MutatingWebhook{Name: "more"})
			}
			return all
		},
		Validating: func(_ *settings, i feature.Installation) []admissionregistrationv1.ValidatingWebhook {
			if i.Shoot {
				return nil
			}
			path := "/judge"
			return []admissionregistrationv1.ValidatingWebhook{{Name: "judge", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: &path}}}}
		},
	}
	got, err := hooksOf(tried(), r)
	must.Succeed(t, err)
	entry := func(name string, more object) object {
		all := object{"name": name, "admissionReviewVersions": nil, "sideEffects": nil}
		for key, value := range more {
			all[key] = value
		}
		return all
	}
	base := object{"namespaceSelector": object{"matchExpressions": []any{object{"key": "$(base)", "operator": "Exists"}}}}
	want := []hookFact{
		{Kind: "Mutating", Path: "/h", Entry: entry("$(prefix)all", base)},
		{Kind: "Validating", Path: "/judge", Modes: []string{"runtime", "runtime-garden"}, Entry: entry("judge", nil)},
		{Kind: "Mutating", Path: "/h", Modes: []string{"runtime-garden", "shoot-garden"}, Entry: entry("garden", nil)},
		{Kind: "Mutating", Path: "/h", When: []condition{{Path: "mode", Is: []any{"all"}, Default: ""}}, Entry: entry("more", nil)},
	}
	expect.DeepEqual(t, got, want)
}

// TestBring: a fact that comes in several ways comes in each of them once.
func TestBring(t *testing.T) {
	value := func(path string, value any) probe { return probe{path: path, value: value} }
	var ways []found
	for _, p := range []probe{
		value("mode", "a"), value("mode", "b"), {path: "section"}, {path: "section.field"}, {path: "section"}, value("other", true), {path: "list", each: &each{List: "list"}}, {path: "list", each: &each{List: "list", Has: "x"}},
	} {
		ways = bring(ways, p)
	}
	want := []found{
		{when: []condition{{Path: "mode", Is: []any{"a", "b"}}}}, {when: []condition{{Path: "section"}}}, {when: []condition{{Path: "other", Is: []any{true}}}}, {each: &each{List: "list"}},
	}
	if diff := cmp.Diff(want, ways, cmp.AllowUnexported(found{})); diff != "" {
		t.Error(diff)
	}
	expect.True(t, ways[0].text() != ways[1].text() && ways[0].text() == (found{when: want[0].when}).text(),
		"ways are not told apart")
}

// TestExecutables: the facts of the executables are found without an error, each switch of theirs is a field, and what nobody sets is what they
// are defaulted to.
func TestExecutables(t *testing.T) {
	for _, e := range executables() {
		expect.True(t, e.err == nil && len(e.Features) != 0 && len(e.Connections) != 0, "%s: %v", e.Executable, e.err)
		all, err := schemaOf(e.config, comments{})
		must.Succeed(t, err)
		for _, f := range e.Features {
			if f.Switch == "" {
				continue
			}
			expect.Succeed(t, expect.ErrorOf(section(all, f.Switch)), "%s, %s", e.Executable, f.Name)
		}
		for _, c := range e.Connections {
			expect.Succeed(t, expect.ErrorOf(section(all, c.Path+".kubeconfig")), "%s", e.Executable)
		}
		for _, path := range []string{"webhooks", "healthProbes", "metrics"} {
			port, _ := e.Config["server"].(map[string]any)[path].(map[string]any)["port"].(int)
			expect.True(t, port > 0, "%s: no port of %s", e.Executable, path)
		}
	}
}
