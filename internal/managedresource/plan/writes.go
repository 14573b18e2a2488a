package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Written is a kind of change in the Event about all changes of a run (MRB-51).
type Written string

// Deletions are not listed, because they include their reason.
const (
	Created    Written = "Created"
	Updated    Written = "Updated"
	Released   Written = "Released"
	HandedOver Written = "Handed over"
	Finalized  Written = "Removed the finalizers"
)

const deletedBecause = "Deleted because "

// Deleted returns the change for a deletion with a reason.
func Deleted(reason string) Written { return Written(deletedBecause + reason) }

func (w Written) isDeletion() bool { return strings.HasPrefix(string(w), deletedBecause) }

// CompareWritten sorts deletions first, so that their names stay in a shortened message.
func CompareWritten(a, b Written) int {
	switch {
	case a.isDeletion() == b.isDeletion():
		return cmp.Compare(a, b)
	case a.isDeletion():
		return -1
	}
	return 1
}

// Sentence returns the number of the objects and their first names: more of deleted objects, because nothing else is
// left of them.
func (w Written) Sentence(names []string) string {
	most := 3
	if w.isDeletion() {
		most = NamedErrors
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return fmt.Sprintf("%s (%d): %s", w, len(names), JoinNames(names, most))
}

// Deletion is a sentence about deleted objects in the message of an Event.
type Deletion struct {
	Reason string
	Names  []string
	// Cut is true if the sentence does not have the names of all objects.
	Cut bool
}

// DeletionsIn returns the deletions in the message of an Event.
func DeletionsIn(message string) []Deletion {
	var found []Deletion
	for sentence := range strings.SplitSeq(message, ". ") {
		head, names, _ := strings.Cut(sentence, "): ")
		reason, isDeletion := strings.CutPrefix(head, deletedBecause)
		if !isDeletion {
			continue
		}
		d := Deletion{}
		d.Reason, _, _ = strings.Cut(reason, " (")
		for item := range strings.SplitSeq(names, ", ") {
			name, rest, cut := strings.Cut(item, " ") // Names have no spaces.
			d.Cut = d.Cut || cut
			if !strings.HasPrefix(rest, "…") { // Otherwise the name was cut.
				d.Names = append(d.Names, name)
			}
		}
		found = append(found, d)
	}
	return found
}
