package identity

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/test/expect"
)

func TestOfSeed(t *testing.T) {
	all := []string{"system:serviceaccounts", "system:serviceaccounts:seed-foo"}
	seeds := "gardener.cloud:system:seeds"
	for name, c := range map[string]struct {
		user   string
		groups []string
		want   SeedClient
		ok     bool
	}{
		"ID-1/nobody":                  {},
		"ID-6/another user":            {user: "foo"},
		"ID-2/without group":           {user: "gardener.cloud:system:seed:foo"},
		"ID-2/another group":           {user: "gardener.cloud:system:seed:foo", groups: []string{"bar"}},
		"ID-3 gardenlet":               {"gardener.cloud:system:seed:foo", []string{seeds}, SeedClient{"foo", Gardenlet}, true},
		"ID-3/dotted":                  {"gardener.cloud:system:seed:foo.bar-1", []string{"x", seeds}, SeedClient{"foo.bar-1", Gardenlet}, true},
		"ID-3/no seed":                 {user: "gardener.cloud:system:seed:", groups: []string{seeds}},
		"ID-3/another prefix":          {user: "gardener.cloud:system:seeds-foo", groups: []string{seeds}},
		"ID-4/ambiguous":               {user: "gardener.cloud:system:seed:<ambiguous>", groups: []string{seeds}},
		"B-4/colon":                    {user: "gardener.cloud:system:seed:a:b", groups: []string{seeds}},
		"B-4/slash":                    {user: "gardener.cloud:system:seed:a/b", groups: []string{seeds}},
		"B-4/dash at the end":          {user: "gardener.cloud:system:seed:a-", groups: []string{seeds}},
		"B-4/two dots":                 {user: "gardener.cloud:system:seed:a..b", groups: []string{seeds}},
		"B-4/too long":                 {user: "gardener.cloud:system:seed:" + strings.Repeat("a", 254), groups: []string{seeds}},
		"ID-5/no namespace group":      {user: "system:serviceaccount:foo:bar", groups: all[:1]},
		"ID-5/no group at all":         {user: "system:serviceaccount:foo:bar"},
		"ID-5/another namespace":       {user: "system:serviceaccount:foo:bar", groups: []string{"system:serviceaccounts", "system:serviceaccounts:foo"}},
		"ID-5/another name":            {user: "system:serviceaccount:seed-foo:bar", groups: all},
		"ID-5 extension":               {"system:serviceaccount:seed-foo:extension-bar", all, SeedClient{"foo", Extension}, true},
		"ID-5/no seed":                 {user: "system:serviceaccount:seed-:extension-bar", groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-"}},
		"ID-2/extension and seeds":     {user: "system:serviceaccount:seed-foo:extension-bar", groups: append([]string{seeds}, all...)},
		"ID-2/gardenlet and SA":        {"gardener.cloud:system:seed:foo", append([]string{seeds}, all...), SeedClient{"foo", Gardenlet}, true},
		"B-4/no ServiceAccount's name": {user: "extension-bar", groups: all},
		"ID-5/foreign group first":     {"system:serviceaccount:seed-a:extension-b", []string{"system:serviceaccounts", "system:serviceaccounts:seed-z", "system:serviceaccounts:seed-a"}, SeedClient{"a", Extension}, true},
		"ID-5/foreign group only":      {user: "system:serviceaccount:seed-a:extension-b", groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-z"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := OfSeed(c.user, c.groups)
			if ok != c.ok || ok && got != c.want {
				t.Errorf("got %v, %v, want %v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func FuzzOfSeed(f *testing.F) {
	f.Add("gardener.cloud:system:seed:foo", "gardener.cloud:system:seeds")
	f.Add("system:serviceaccount:seed-foo:extension-bar", "system:serviceaccounts")
	f.Fuzz(func(t *testing.T, user, group string) {
		groups := []string{group, "system:serviceaccounts", "system:serviceaccounts:seed-foo"}
		var client SeedClient
		var ok bool
		yamltest.Bounded(t, len(user)+len(group), func() { client, ok = OfSeed(user, groups) })
		if ok && (client.Seed == "" || !strings.Contains(user, client.Seed)) {
			t.Errorf("%q with %q became a client of %q", user, group, client.Seed)
		}
	})
}

func FuzzSeedOfCertificateRequest(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		yamltest.Bounded(t, len(request), func() {
			seed, err := SeedOfCertificateRequest(request, wantedUsages)
			expect.Equal(t, err == nil, seed != "", "seed %q with error %v", seed, err)
		})
	})
}

func TestNames(t *testing.T) {
	for object, want := range map[[2]string]string{
		{"managedseednamespace", "managedseed1"}: "78f9fc", {"gardenletnamespace", "seed1"}: "2a9d62", {"garden", "seed"}: "c3b902", {"garden", "my-seed"}: "88264c",
	} {
		expect.Equal(t, wellknown.BootstrapTokenID(object[0], object[1]), want, "2.4: the token ID of %v", object)
	}
	for text, want := range map[string][3]string{
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource garden/x.": {"ManagedSeed", "garden", "x"},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/x.":   {"Gardenlet", "garden", "x"},
		"A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource x.":          {"Gardenlet", "", "x"},
		"something else": {"", "", "something else"},
	} {
		kind, namespace, name := wellknown.ParseBootstrapDescription(text)
		expect.Equal(t, [3]string{kind, namespace, name}, want, "2.4: %q", text)
	}
	for name, want := range map[string][2]string{
		wellknown.Bootstrapper("garden", "x"): {"garden", "x"}, "gardener.cloud:system:seed-bootstrapper:garden:x": {"garden", "x"}, "gardener.cloud:system:seed-bootstrapper:x": {"", "x"},
	} {
		namespace, seed, ok := wellknown.ParseBootstrapper(name)
		expect.True(t, ok && namespace == want[0] && seed == want[1], "2.4: %q is %q, %q, %v", name, namespace, seed, ok)
	}
	for _, name := range []string{"gardener.cloud:system:seed-bootstrapper:garden:x:y", "gardener.cloud:system:seed-bootstrapper:garden:", "other"} {
		_, _, ok := wellknown.ParseBootstrapper(name)
		expect.False(t, ok, "B: %q should not be the name of a bootstrapper", name)
	}
}
