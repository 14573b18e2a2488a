package rules

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
)

// TestPropertyOfNames: a request without the name of an object is about all objects of a namespace, or of the garden; so it changes nothing but by
// create, whatever the resource and the client are. Excepted is the namespace of the client's seed, which has nothing of others: there extensions have all
// verbs of Leases (SP-3), and gardenlets those of ServiceAccounts (SP-8). Events are anybody's in any case (SR-13).
func TestPropertyOfNames(t *testing.T) {
	asked, inSeedNamespace := 0, 0
	for seed := range property(200) {
		g := gardengen.New(5_000_000 + seed)
		objects := draw(g, 5+g.IntN(20))
		w := newWorld(gardengen.Now)
		w.seeds.ReadAll = g.IntN(2) == 0
		w.populate(objects)
		for range 100 {
			q := review(g, objects)
			q.Name = ""
			if verbOf(q.Verb).has(verbCreate|reads) || q.Resource == "events" {
				continue
			}
			for _, a := range []*Authorizer{w.seeds, w.shoots} {
				decision, _, _ := a.Authorize(t.Context(), q)
				asked++
				if decision != authorizer.DecisionAllow {
					continue
				}
				if inOwnSeedNamespace(q) {
					inSeedNamespace++
					continue
				}
				t.Fatalf("SA-10, SH-14e, SH-18a, SH-22: seed %d: %s is allowed %s of %s/%s in %q without a name", seed, q.User.GetName(), q.Verb, resourceOf(q), q.Subresource, q.Namespace)
			}
		}
	}
	expect.True(t, asked >= 10000 && inSeedNamespace != 0,
		"%d were asked, %d allowed in the seed's own namespace: that says little", asked, inSeedNamespace)
}

func inOwnSeedNamespace(q authorizer.AttributesRecord) bool {
	who, seed := seedClient(q.User.GetName(), q.User.GetGroups())
	if _, _, shoot := shootClient(q.User.GetName(), q.User.GetGroups()); seed == "" && shoot != "" {
		who, seed = "e", shoot // An extension of a shoot that is the seed (SH-23).
	}
	resource, _, _ := strings.Cut(resourceOf(q), ".")
	return q.Namespace == "seed-"+seed && (who == "e" && resource == "leases" || who == "g" && resource == "serviceaccounts")
}
