package brake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

const (
	// many is the size from which on the loss of a whole inventory is a mass deletion.
	many = 10
	// named is the number of objects that a message names.
	named = 10
	// checksumBytes keep a checksum short enough to be typed; it protects from mistakes, not from forgery.
	checksumBytes = 6
)

// precious are the kinds whose deletion deletes what no manifest contains: one object of them is a mass deletion.
var precious = []schema.GroupKind{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Kind: "Namespace"}, {Kind: "PersistentVolume"},
	{Kind: "PersistentVolumeClaim"},
}

// Deletion has the objects that a run would delete because they are in no manifest any more.
type Deletion struct {
	// Had is the number of objects that the inventory has.
	Had int
	// Objects are the objects to delete.
	Objects []resourcesv1alpha1.ObjectReference
}

// IsMass reports whether the deletion is one of all objects, of which there are many, or of an object of a precious
// kind (MRX-20).
func (d Deletion) IsMass() bool {
	return d.Had >= many && len(d.Objects) >= d.Had ||
		slices.ContainsFunc(d.Objects, func(ref resourcesv1alpha1.ObjectReference) bool {
			return slices.Contains(precious, objects.IDOfEntry(&ref).GroupKind())
		})
}

func (d Deletion) names() []string {
	names := make([]string, len(d.Objects))
	for i := range d.Objects {
		names[i] = plan.NameOfReference(&d.Objects[i].ObjectReference)
	}
	slices.Sort(names)
	return names
}

// Checksum identifies the set of objects: a confirmation is about this set only.
func (d Deletion) Checksum() string {
	sum := sha256.Sum256([]byte(strings.Join(d.names(), "\n")))
	return hex.EncodeToString(sum[:checksumBytes])
}

// String names the objects, sorted and bounded.
func (d Deletion) String() string {
	return fmt.Sprintf("%d of %d objects that no manifest has any more: %s", len(d.Objects), d.Had,
		plan.JoinNames(d.names(), named))
}

// confirmation precedes the checksum in a message.
const confirmation = resourcesv1alpha1.AnnotationConfirmDeletion + "="

// Message returns the message of the condition while the deletion waits (MRX-21). It is the same for the same set and
// wait, so that the condition shows the beginning of the wait.
func (d Deletion) Message(wait time.Duration) string {
	return fmt.Sprintf("The deletion of %s. It begins %s after the last update of this condition, or at once with the"+
		" annotation %s%s",
		strings.Replace(d.String(), ":", " waits:", 1), wait, confirmation, d.Checksum())
}

// ChecksumIn returns the checksum that a message asks to be confirmed; empty if it asks for none.
func ChecksumIn(message string) string {
	_, checksum, _ := strings.Cut(message, confirmation)
	if raw, err := hex.DecodeString(checksum); err != nil || len(raw) != checksumBytes {
		return ""
	}
	return checksum
}

// Verdict is the outcome for a deletion.
type Verdict int

// Verdicts. The zero value waits.
const (
	// Waits ends the run without a change of the target.
	Waits Verdict = iota
	// Ordinary is no mass deletion.
	Ordinary
	// Observed would have waited, but nothing ever waits.
	Observed
	// Confirmed was waited for, or confirmed by a user.
	Confirmed
	// Elapsed has waited long enough; the caller puts on record that it is confirmed.
	Elapsed
)

// Judge decides whether a deletion waits. confirmed is the value of the annotation, and waited how long the condition
// has said the same.
func (d Deletion) Judge(wait time.Duration, confirmed string, waited time.Duration) Verdict {
	switch {
	case !d.IsMass():
		return Ordinary
	case wait == 0:
		return Observed
	case confirmed == d.Checksum():
		return Confirmed
	case waited >= wait:
		return Elapsed
	}
	return Waits
}
