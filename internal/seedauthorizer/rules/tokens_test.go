package rules

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
)

// The name of a bootstrap token has 24 bits of what it is for, its description all of it (SH-16b).
func TestBootstrapToken_BelongsToItsDescription(t *testing.T) {
	token := wellknown.BootstrapTokenSecret("n", "s")
	description := func(text string) *live {
		return &live{objects: map[string]runtime.Object{"secrets:kube-system/" + token: &corev1.Secret{Data: map[string][]byte{"description": []byte(text)}}}}
	}
	of := func(kind, object string) string {
		return "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1." + kind + " resource " + object + "."
	}
	for name, c := range map[string]struct {
		live *live
		want string
	}{
		"own":                       {description("Used for connecting the self-hosted Shoot n/s to the garden."), "allowed"},
		"own Gardenlet":             {description(of("Gardenlet", "n/self-hosted-shoot-s")), "allowed"},
		"the Gardenlet of a seed":   {description(of("Gardenlet", "n/s")), "no opinion: does not match with identity of requestor n/s"},
		"a Shoot whose id is equal": {description("Used for connecting the self-hosted Shoot other/t to the garden."), "no opinion: does not match with identity of requestor n/s"},
		"another's ManagedSeed":     {description(of("ManagedSeed", "n/other")), "no opinion: does not match with identity of requestor n/s"},
		"no such ManagedSeed":       {description(of("ManagedSeed", "n/s")), "no opinion: does not match with identity of requestor n/s"},
		"no description":            {description(""), "no opinion: does not match with identity of requestor n/s"},
		"it cannot be read":         {&live{err: errFake}, "error: fake-err"},
		"it does not exist":         {&live{}, "allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := decided(shootAuthorizer(c.live), ask(t, "shoot-gardenlet get secrets kube-system/"+token))
			expect.True(t, matches(got, c.want), "got %s, want %s", got, c.want)
			expect.Equal(t, c.live.asked, 1, "looked up %d times", c.live.asked)
			if got := decided(shootAuthorizer(c.live), ask(t, "shoot-gardenlet watch secrets kube-system/"+token)); !matches(got, c.want) {
				t.Errorf("T4-11, SH-16b: watch: got %s, want %s", got, c.want)
			}
			a := shootAuthorizer(c.live)
			if got := decided(a, ask(t, "shoot-gardenlet delete secrets kube-system/"+token)); name == "the Gardenlet of a seed" && got == "allowed" {
				t.Errorf("SH-16c: delete: got %s", got)
			}
		})
	}
}

// managedSeed makes the shoot with the name a seed, as a ManagedSeed in token mode does (GE-24, GE-25, GE-27, SHG-4).
func managedSeed(a *Authorizer, namespace, name, shoot string) {
	m := graph.Vertex{Kind: relation.ManagedSeed, Namespace: namespace, Name: name}
	a.Graph.Set(m, []graph.Edge{
		{From: m, To: graph.Vertex{Kind: relation.Shoot, Namespace: namespace, Name: shoot}}, {From: relation.SeedVertex(name), To: m, Class: graph.Direct}, {From: m, To: relation.SeedVertex(name)},
		{From: graph.Vertex{Kind: relation.Secret, Namespace: wellknown.KubeSystem, Name: wellknown.BootstrapTokenSecret(namespace, name)}, To: m, Class: graph.Manages},
	})
}

// The gardenlet of a self-hosted shoot deploys the gardenlet of the seed that the shoot is, and looks for its token before it makes
// one. The ManagedSeed has the name of the Shoot, as usual, so that both tokens have one name (SH-16b). Extensions do not get it, neither by the shoot's
// rules nor by those of the seed (SH-23, T3-5).
func TestManagedSeedToken_IsForTheGardenlet(t *testing.T) {
	token := func(namespace string) string {
		return "secrets kube-system/" + wellknown.BootstrapTokenSecret(namespace, "s")
	}
	text := func(kind, object string) string {
		return "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1." + kind + " resource " + object + "."
	}
	for name, c := range map[string]struct{ question, description, shoot, want string }{
		"SH-16b/own":                                     {"shoot-gardenlet get " + token("n"), text("ManagedSeed", "n/s"), "s", "allowed"},
		"SH-16b/own, list":                               {"shoot-gardenlet list " + token("n"), text("ManagedSeed", "n/s"), "s", "allowed"},
		"SH-16b/own, watch":                              {"shoot-gardenlet watch " + token("n"), text("ManagedSeed", "n/s"), "s", "allowed"},
		"SH-16b/own, refreshed":                          {"shoot-gardenlet patch " + token("n"), text("ManagedSeed", "n/s"), "s", "allowed"},
		"SH-16c/own, deleted":                            {"shoot-gardenlet delete " + token("n"), text("ManagedSeed", "n/s"), "s", "allowed"},
		"SH-16b/a ManagedSeed of another Shoot":          {"shoot-gardenlet get " + token("n"), text("ManagedSeed", "n/s"), "t", "no opinion: does not match with identity of requestor n/s"},
		"SH-16b/a ManagedSeed whose token has that name": {"shoot-gardenlet get " + token("n"), text("ManagedSeed", "n/x"), "s", "no opinion: does not match with identity of requestor n/s"},
		"SH-16b/the Gardenlet of a seed by that name":    {"shoot-gardenlet get " + token("n"), text("Gardenlet", "n/s"), "s", "no opinion: does not match with identity of requestor n/s"},
		"SH-16b/a part of it":                            {"shoot-gardenlet get " + strings.Replace(token("n"), "secrets", "secrets/status", 1), text("ManagedSeed", "n/s"), "s", "no opinion: "},
		"SH-16c/a part of it, deleted":                   {"shoot-gardenlet delete " + strings.Replace(token("n"), "secrets", "secrets/status", 1), text("ManagedSeed", "n/s"), "s", "no opinion: "},
		"SH-23, T3-5/extension":                          {"garden-extension get " + token("garden"), text("ManagedSeed", "garden/s"), "s", "no opinion: only the gardenlet of a shoot needs a bootstrap token"},
		"SH-23, T3-5/extension, watch":                   {"garden-extension watch " + token("garden"), text("ManagedSeed", "garden/s"), "s", "no opinion: only the gardenlet of a shoot needs a bootstrap token"},
		"SH-23, T3-5/extension, update":                  {"garden-extension update " + token("garden"), text("ManagedSeed", "garden/s"), "s", "no opinion: only the gardenlet of a shoot needs a bootstrap token"},
		"SH-23, T3-5/extension, patch":                   {"garden-extension patch " + token("garden"), text("ManagedSeed", "garden/s"), "s", "no opinion: only the gardenlet of a shoot needs a bootstrap token"},
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(c.question)
			namespace := "n"
			if words[0] == "garden-extension" {
				namespace = "garden"
			}
			l := &live{objects: map[string]runtime.Object{words[2] + ":" + words[3]: &corev1.Secret{Data: map[string][]byte{"description": []byte(c.description)}}}}
			a := shootAuthorizer(l)
			managedSeed(a, namespace, "s", c.shoot)
			managedSeed(a.seeds, namespace, "s", c.shoot)
			a.seeds.Graph.Set(relation.SeedVertex("s"), nil)
			got := decided(a, ask(t, c.question))
			expect.True(t, matches(got, c.want), "got %s, want %s", got, c.want)
		})
	}
}
