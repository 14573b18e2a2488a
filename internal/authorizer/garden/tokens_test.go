package garden

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/foreign/names"
)

// TestOwnToken: the name of a bootstrap token has 24 bits of what it is for, its description all of it (SH-16b).
func TestOwnToken(t *testing.T) {
	token := names.BootstrapTokenSecret("n", "s")
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
		"own":                       {description("Used for connecting the self-hosted Shoot n/s to the garden."), "A"},
		"own Gardenlet":             {description(of("Gardenlet", "n/self-hosted-shoot-s")), "A"},
		"the Gardenlet of a seed":   {description(of("Gardenlet", "n/s")), "N(does not match with identity of requestor n/s)"},
		"a Shoot whose id is equal": {description("Used for connecting the self-hosted Shoot other/t to the garden."), "N(does not match with identity of requestor n/s)"},
		"a ManagedSeed's":           {description(of("ManagedSeed", "n/s")), "N(does not match with identity of requestor n/s)"},
		"no description":            {description(""), "N(does not match with identity of requestor n/s)"},
		"it cannot be read":         {&live{err: errFake}, "error(fake-err)"},
		"it does not exist":         {&live{}, "A"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decided(shootAuthorizer(c.live), ask(t, "SG get secrets kube-system/"+token)); !matches(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.live.asked != 1 {
				t.Errorf("looked up %d times", c.live.asked)
			}
			a := shootAuthorizer(c.live)
			if got := decided(a, ask(t, "SG delete secrets kube-system/"+token)); name == "the Gardenlet of a seed" && got == "A" {
				t.Errorf("SH-16c: delete: got %s", got)
			}
		})
	}
}
