package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Written is the change that a run made to an object, in the Event about all its changes (MRB-51).
type Written string

// All but deletions, which carry their reason.
const (
	Created    Written = "Created"
	Updated    Written = "Updated"
	Released   Written = "Released"
	HandedOver Written = "Handed over"
	Finalized  Written = "Removed the finalizers"
)

const deletedBecause = "Deleted because "

// Deleted is a deletion for a reason.
func Deleted(reason string) Written { return Written(deletedBecause + reason) }

func (w Written) isDeletion() bool { return strings.HasPrefix(string(w), deletedBecause) }

// CompareWritten sorts deletions first, so that a shortened message still has their names.
func CompareWritten(a, b Written) int {
	switch {
	case a.isDeletion() == b.isDeletion():
		return cmp.Compare(a, b)
	case a.isDeletion():
		return -1
	}
	return 1
}

// Sentence counts the objects and names the first of them: of deleted objects more, as nothing else is left of them.
func (w Written) Sentence(names []string) string {
	most := 3
	if w.isDeletion() {
		most = NamedErrors
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	return fmt.Sprintf("%s (%d): %s", w, len(names), JoinNames(names, most))
}

// Deletion is a sentence about deleted objects.
type Deletion struct {
	Reason string
	Names  []string
	// Cut is true if the sentence does not name all objects.
	Cut bool
}

// DeletionsIn returns the deletions that the message of an Event reports.
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
			name, rest, cut := strings.Cut(item, " ") // No name has a space.
			d.Cut = d.Cut || cut
			if !strings.HasPrefix(rest, "…") { // That one is not whole.
				d.Names = append(d.Names, name)
			}
		}
		found = append(found, d)
	}
	return found
}
