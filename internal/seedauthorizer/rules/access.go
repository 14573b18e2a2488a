package rules

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// SeedReads returns the lookups of the SeedAuthorizer.
func SeedReads() []feature.Read { return seeds.lookups(relation.Watches) }

// ShootReads returns the lookups of the ShootAuthorizer.
func ShootReads() []feature.Read { return shoots.lookups(relation.SelfHosted) }

// lookups returns the live reads before a refusal by path: of objects of watched kinds that may not have arrived yet,
// of objects of other kinds, which may be deleted only if they do not exist (lookAgain), and of exceptions.
func (t *table) lookups(watches relation.Table) []feature.Read {
	var all []feature.Read
	for _, r := range t.rules {
		for _, each := range []*rule{r, r.extension} {
			if each == nil {
				continue
			}
			if each.path != 0 && (watches.Of(each.kind) != nil || each.path.has(verbDelete)) || each.lookup != nil {
				all = append(all, garden.Lookup(schema.GroupResource{Group: each.group, Resource: each.resource}))
				break
			}
		}
	}
	return all
}
