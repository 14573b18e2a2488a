package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-project/espalier/internal/ratelimit/ratelimittest"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
)

// Look-ups wait by seed and then by user, or by namespace, shoot and user; those on behalf of an extension of a self-hosted shoot that is
// a seed wait as that extension's, for the seed. A look-up that waits until the deadline leaves the answer as it is without one, with the reason.
func TestLookups_WaitByClient(t *testing.T) {
	const gone, anotherSeed = "delete configmaps n/gone", "system:serviceaccount:seed-invented:extension-x"
	for name, c := range map[string]struct {
		client, want  string
		full          bool
		seeds, shoots string
	}{
		"T3-1/gardenlet":           {client: "gardenlet", want: "allowed", seeds: "Seed:seed | gardener.cloud:system:seed:seed"},
		"T3-1/extension":           {client: "extension", want: "allowed", seeds: "Seed:seed | system:serviceaccount:seed-seed:extension-provider-local"},
		"T3-1/too late":            {client: "gardenlet", full: true, want: "no opinion: too many such requests", seeds: "Seed:seed | gardener.cloud:system:seed:seed"},
		"T3-1/self-hosted shoot":   {client: "shoot-extension", want: "allowed", shoots: "garden-n | Shoot:garden-n/s | system:serviceaccount:garden-n:extension-shoot--s--e"},
		"T3-1/delegated":           {client: "garden-extension", want: "allowed", seeds: "Seed:s | system:serviceaccount:garden:extension-shoot--s--f"},
		"SHI-3/Shoot not known":    {client: "shoot-gardenlet", want: "no opinion"},
		"T3-2/Seed does not exist": {client: anotherSeed, want: "no opinion: the client's seed or shoot is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(time.Unix(0, 0))
			w.has(t, relation.Seed, builders.Seed("seed"))
			w.has(t, relation.Seed, builders.Seed("s"))
			w.has(t, relation.ManagedSeed, builders.ManagedSeed("garden", "s", "s"))
			for namespace, installation := range map[string]string{"garden-n": "e", "garden": "f"} {
				w.has(t, relation.Shoot, builders.Shoot(namespace, "s").SelfHosted())
				w.has(t, relation.ControllerInstallation, builders.ControllerInstallation(installation, "r").With("spec.shootRef", builders.At(namespace+"/s")))
			}
			seeds, shoots := &ratelimittest.Paths{Full: c.full}, &ratelimittest.Paths{Full: c.full}
			w.seeds.Queue, w.shoots.Queue = seeds, shoots
			asks, question := w.seeds, ask(t, "gardenlet "+gone)
			if question.User = clients[c.client]; clients[c.client] == nil {
				question.User = &user.DefaultInfo{Name: c.client, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:seed-invented"}}
			}
			if strings.HasPrefix(c.client, "shoot-") || c.client == "garden-extension" {
				asks = w.shoots
			}
			if c.client == "garden-extension" {
				question.User = &user.DefaultInfo{Name: "system:serviceaccount:garden:extension-shoot--s--f", Groups: gardenExtension.Groups}
			}
			got := decided(asks, question)
			expect.True(t, matches(got, c.want), "got %s, want %s", got, c.want)
			expect.Equal(t, strings.Join(seeds.Seen, ", "), c.seeds, "look-ups for seeds")
			expect.Equal(t, strings.Join(shoots.Seen, ", "), c.shoots, "look-ups for shoots")
		})
	}
}

// TestInventedClients: members of a project make ServiceAccounts with the names of extensions of self-hosted shoots as they like. For Shoots that
// there are not nothing is looked up (SHI-3); look-ups of a Seed for its own clients, which may just have been created, take turns as one client's (T3-2).
func TestInventedClients(t *testing.T) {
	w := newWorld(time.Unix(0, 0))
	queue := &ratelimittest.Paths{}
	w.shoots.Queue = queue
	for i := range 50 {
		question := ask(t, "shoot-extension delete configmaps n/gone")
		question.User = &user.DefaultInfo{Name: fmt.Sprintf("system:serviceaccount:garden-n:extension-shoot--invented%d--e", i), Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden-n"}}
		for _, verb := range []string{"delete", "get", "patch"} {
			question.Verb = verb
			decided(w.shoots, question)
		}
	}
	expect.True(t, w.live.asked == 0 && len(queue.Seen) == 0, "T3-2: %d objects were looked up", w.live.asked)
	if got := decided(w.shoots, ask(t, "shoot-gardenlet patch shoots/status n/s")); got != "no opinion" || len(queue.Seen) != 0 {
		t.Errorf("SHI-3: the Shoot itself: got %s, in the queue are %q", got, queue.Seen)
	}
	w.seeds.Queue = queue
	if got := decided(w.seeds, ask(t, "gardenlet patch seeds/status seed")); got == "allowed" || len(queue.Seen) != 1 || !strings.HasPrefix(queue.Seen[0], " | ") {
		t.Errorf("T3-2: the Seed itself: got %s, in the queue are %q", got, queue.Seen)
	}
}
