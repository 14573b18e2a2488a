package rules

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// SeedReads is what the SeedAuthorizer looks up.
func SeedReads() []feature.Read { return seeds.lookups(relation.Watches) }

// ShootReads is what the ShootAuthorizer looks up.
func ShootReads() []feature.Read { return shoots.lookups(relation.SelfHosted) }

// lookups are what is read live before something is refused by path: objects of kinds that are watched and may not have come yet, and
// others where only one that does not exist may be deleted (lookAgain); and what a special reads.
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
