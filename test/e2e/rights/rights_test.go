package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// asked is a request as the API server writes it down.
func asked(user, verb, group, resource, subresource, namespace, name string, code int) *cluster.Request {
	r := &cluster.Request{Verb: verb}
	r.User.Name, r.Response.Code = user, code
	r.Object.Group, r.Object.Resource, r.Object.Subresource, r.Object.Namespace, r.Object.Name = group, resource, subresource, namespace, name
	return r
}

func TestAllows(t *testing.T) {
	within := func(namespace string, policy rbacv1.PolicyRule) *rule {
		return &rule{"x", "f", feature.Scope{Cluster: feature.Source, Namespace: namespace}, policy}
	}
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "secrets/status"}, Verbs: []string{"get", "list"}}
	named := secrets
	named.ResourceNames = []string{"a"}
	for name, c := range map[string]struct {
		rule    *rule
		request *cluster.Request
		want    string
	}{
		"verb and resource":         {within("", secrets), asked("u", "get", "", "secrets", "", "n", "a", 200), "x f source get secrets"},
		"another verb":              {within("", secrets), asked("u", "watch", "", "secrets", "", "n", "a", 200), ""},
		"another group":             {within("", secrets), asked("u", "get", "g", "secrets", "", "n", "a", 200), ""},
		"a subresource":             {within("", secrets), asked("u", "get", "", "secrets", "status", "n", "a", 200), "x f source get secrets/status"},
		"a subresource without one": {within("", secrets), asked("u", "get", "", "secrets", "scale", "n", "a", 200), ""},
		"in the namespace":          {within("n", secrets), asked("u", "get", "", "secrets", "", "n", "a", 200), "x f source get secrets"},
		"in another namespace":      {within("n", secrets), asked("u", "get", "", "secrets", "", "m", "a", 200), ""},
		"the name":                  {within("", named), asked("u", "get", "", "secrets", "", "n", "a", 200), "x f source get secrets"},
		"another name":              {within("", named), asked("u", "get", "", "secrets", "", "n", "b", 200), ""},
		"everything is allowed": {
			within("", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}), asked("u", "get", "g", "things", "status", "n", "b", 200), "x f source * *.*",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if right, allowed := c.rule.allows(c.request); allowed {
				got = right.String()
			}
			expect.Equal(t, got, c.want)
		})
	}
}

// TestRead: what requests of a process used is read from what API servers and the harness wrote.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "garden-1-2")
	must.Succeed(t, os.Mkdir(folder, 0o755))
	write := func(name string, values ...any) {
		t.Helper()
		var lines []string
		for _, value := range values {
			line, err := json.Marshal(value)
			must.Succeed(t, err)
			lines = append(lines, string(line))
		}
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(strings.Join(lines, "\n")+"\n{\"cut o"), 0o600))
	}
	granted, err := json.Marshal(harness.Granted{User: "u", Executable: "admission-controller", Cluster: "garden", Config: []byte("kind: AdmissionControllerConfiguration")})
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(filepath.Join(folder, strings.ReplaceAll(harness.GrantedFiles, "*", "u")), granted, 0o600))
	write(cluster.RequestsLog,
		asked("u", "watch", "core.gardener.cloud", "projects", "", "", "", 200),
		asked("u", "list", "core.gardener.cloud", "projects", "", "", "", 403),
		asked("other", "get", "", "configmaps", "", "n", "a", 200))
	write("requests-2026-11-22T10-00-00.000.log", asked("u", "get", "", "secrets", "", "n", "a", 404))
	rights, used, err := read(dir)
	must.Succeed(t, err)
	var got []string
	for _, each := range distinct(rights) {
		if used[each] {
			got = append(got, each.String())
		}
	}
	want := []string{
		"admission-controller graph garden watch projects.core.gardener.cloud", "admission-controller seedauthorizer garden get secrets",
		"admission-controller seedrestriction garden get secrets", "admission-controller shootauthorizer garden get secrets",
	}
	expect.DeepEqual(t, got, want)
	if _, _, err := read(t.TempDir()); err == nil {
		t.Error("an empty folder is read")
	}
}

func TestReport(t *testing.T) {
	get, list := right{"x", "f g", "source", "get", "secrets"}, right{"x", "f g", "source", "list", "secrets"}
	const head = "| executable | feature | cluster | verbs | resources | why |\n|---|---|---|---|---|---|\n"
	for name, c := range map[string]struct {
		page      string
		used      map[right]bool
		out, fail string
	}{
		"all is used":                 {"", map[right]bool{get: true, list: true}, "2 rights of features, 2 used by requests of the tests, 0 explained", ""},
		"one is not used":             {"", map[right]bool{get: true}, "NOT USED by any test: x f g source list secrets; ", ""},
		"it is explained":             {"| x | f g | source | list, watch | secrets | because |\n", map[right]bool{get: true}, "1 used by requests of the tests, 1 explained", ""},
		"explained for nothing":       {"| x | f g | source | list | secrets | because |\n", map[right]bool{get: true, list: true}, "all used this time: x | f g | source | list | secrets\n", ""},
		"explained, but there is not": {"| x | f g | target | list | secrets | because |\n", map[right]bool{get: true, list: true}, "", "rights that there are not: x | f g | target | list | secrets"},
		"without a reason":            {"| x | f g | source | list | secrets | |\n", nil, "", "it is not said why: x | f g"},
	} {
		t.Run(name, func(t *testing.T) {
			out := ""
			explained, err := explanations(head + c.page)
			if err == nil {
				out, err = report([]right{get, list}, c.used, explained)
			}
			if !strings.Contains(out, c.out) || (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("got %v and\n%s", err, out)
			}
		})
	}
}

// TestPage: what the page explains is there.
func TestPage(t *testing.T) {
	explained, err := explanations(reviewed)
	must.Succeed(t, err)
	all := declared()
	for _, e := range explained {
		expect.True(t, slices.ContainsFunc(all, e.explains), "there are no such rights: %s", e.String())
	}
}
