package apply

import (
	"testing"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

// MRB-3: a run that ends as its ManagedResource is another one by now puts those objects into the inventory that carry its origin since it wrote them, whether it
// created them or took them over; an object that stays another one's is not on record.
func TestTakenOverIsOnRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		done outcome
		want bool
	}{
		"MRB-3/created":                          {outcome{result: "created"}, true},
		"MRB-3/taken over":                       {outcome{result: "updated", anothers: true}, true},
		"MRB-3/updated, and another one owns it": {outcome{result: "updated", anothers: true, keptBy: objects.Owner{Name: "x"}}, false},
		"MRB-3/its own before":                   {outcome{result: "updated"}, false},
		"MRB-3/left as it was":                   {outcome{result: "unchanged", anothers: true}, false},
	} {
		expect.Equal(t, tc.done.gainedOrigin(), tc.want, "%s: on record", name)
	}
}
