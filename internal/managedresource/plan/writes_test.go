package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
)

// TestDeletionsIn_ReadsShortenedMessages: the names of deleted objects come back from the message of an Event, also from one that is shortened.
func TestDeletionsIn_ReadsShortenedMessages(t *testing.T) {
	t.Parallel()
	many := make([]string, NamedErrors+4)
	for i := range many {
		many[i] = fmt.Sprintf("v1/ConfigMap/n/a%02d", i)
	}
	for name, c := range map[string]struct {
		message string
		want    []Deletion
	}{
		"MRB-51/nothing was deleted": {Created.Sentence([]string{"v1/ConfigMap/n/a"}), nil},
		"MRB-51/two reasons": {
			Deleted("x is y").Sentence([]string{"b", "a"}) + ". " + Deleted("z").Sentence([]string{"c"}) + ". " + Updated.Sentence([]string{"d"}),
			[]Deletion{{Reason: "x is y", Names: []string{"a", "b"}}, {Reason: "z", Names: []string{"c"}}},
		},
		"MRB-51/more than are named": {Deleted("x").Sentence(many), []Deletion{{Reason: "x", Names: many[:NamedErrors], Cut: true}}},
		"MRB-51/a name that is cut is none": {
			meta.Shortened("Checksum of the Secrets: 1. "+Deleted("x").Sentence([]string{"v1/ConfigMap/n/a", "v1/ConfigMap/n/" + strings.Repeat("b", 99)}), 110),
			[]Deletion{{Reason: "x", Names: []string{"v1/ConfigMap/n/a"}, Cut: true}},
		},
	} {
		expect.DeepEqual(t, DeletionsIn(c.message), c.want, "%s", name)
	}
	expect.Equal(t, Finalized.Sentence([]string{"a", "a"}), "Removed the finalizers (1): a", "MRB-51: an object that was written twice")
	for _, order := range [][2]Written{{Deleted("z"), Created}, {Deleted("a"), Deleted("b")}, {Created, Updated}, {Deleted("z"), HandedOver}} {
		expect.True(t, CompareWritten(order[0], order[1]) < 0 && CompareWritten(order[1], order[0]) > 0,
			"MRB-51: %v are not in this order", order)
	}
}
