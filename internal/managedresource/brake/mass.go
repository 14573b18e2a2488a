package brake

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

const (
	// many is the number of deleted objects from which a deletion may be a mass deletion, even without a precious
	// kind.
	many = 10
	// Few is the largest inventory in which `many` deletions are always half or more of the objects: only larger
	// inventories need the places of the manifests.
	Few = 2 * many
	// named is the largest number of objects that a message names.
	named = 10
	// checksumBytes is small enough to type the checksum: it protects from mistakes, not from forgery.
	checksumBytes = 6
)

// precious are the kinds whose deletion deletes data that is in no manifest: deleting one of their objects is a mass
// deletion.
var precious = []schema.GroupKind{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Kind: "Namespace"}, {Kind: "PersistentVolume"},
	{Kind: "PersistentVolumeClaim"},
}

// IsPrecious reports whether deleting an object of a kind deletes data that is in no manifest (MRX-20).
func IsPrecious(kind schema.GroupKind) bool { return slices.Contains(precious, kind) }

// Manifests maps each object to the Secret and key that contained its manifest at the last successful run.
type Manifests map[objects.ID]Manifest

// Manifest is the place of a manifest: a key of a Secret.
type Manifest struct{ Secret, Key string }

// Deletion is the set of objects that a run would delete because no manifest has them any more.
type Deletion struct {
	// Had is the number of objects in the inventory.
	Had int
	// Objects are the objects to delete, Stay the objects that still have a manifest.
	Objects []resourcesv1alpha1.ObjectReference
	Stay    []objects.ID
	// Manifests are the places of the manifests at the last successful run of this process; nil before that run.
	Manifests Manifests
}

// Rule returns the reason why the deletion is a mass deletion, as a clause after "because"; empty if it is not
// (MRX-20).
func (d Deletion) Rule() string {
	for i := range d.Objects {
		if IsPrecious(d.Objects[i].GroupVersionKind().GroupKind()) {
			return fmt.Sprintf("%s is among them", plan.NameOfReference(&d.Objects[i].ObjectReference))
		}
	}
	switch {
	case len(d.Objects) < many:
		return ""
	case 2*len(d.Objects) >= d.Had:
		return "they are half or more of the objects"
	}
	return d.lostSecret()
}

// IsMass reports whether the deletion is a mass deletion (MRX-20).
func (d Deletion) IsMass() bool { return d.Rule() != "" }

// lostSecret returns the rule about a Secret, or a key of one, whose objects would all be deleted, if these are
// `many` or more. Objects whose Secret this process never read count as objects of one Secret.
func (d Deletion) lostSecret() string {
	lost := map[Manifest]int{}
	for i := range d.Objects {
		from := d.Manifests[objects.IDOfEntry(&d.Objects[i])]
		lost[from]++
		if from.Key != "" {
			lost[Manifest{Secret: from.Secret}]++
		}
	}
	for _, id := range d.Stay {
		if from, found := d.Manifests[id]; found {
			delete(lost, from)
			delete(lost, Manifest{Secret: from.Secret})
		}
	}
	maps.DeleteFunc(lost, func(_ Manifest, n int) bool { return n < many })
	if len(lost) == 0 {
		return ""
	}
	// A Secret sorts before its keys.
	from := slices.MinFunc(slices.Collect(maps.Keys(lost)), func(a, b Manifest) int {
		return cmp.Or(cmp.Compare(a.Secret, b.Secret), cmp.Compare(a.Key, b.Key))
	})
	switch {
	case from == Manifest{}:
		return "it is unknown which Secrets their manifests were in"
	case from.Key == "":
		return fmt.Sprintf("they include all objects of Secret %s", from.Secret)
	}
	return fmt.Sprintf("they include all objects of key %q of Secret %s", from.Key, from.Secret)
}

func (d Deletion) names() []string {
	names := make([]string, len(d.Objects))
	for i := range d.Objects {
		names[i] = plan.NameOfReference(&d.Objects[i].ObjectReference)
	}
	slices.Sort(names)
	return names
}

// Checksum identifies the set of objects, because a confirmation is valid for this set only.
func (d Deletion) Checksum() string {
	sum := sha256.Sum256([]byte(strings.Join(d.names(), "\n")))
	return hex.EncodeToString(sum[:checksumBytes])
}

// String returns the names of the objects, sorted and limited in number.
func (d Deletion) String() string {
	return fmt.Sprintf("%d of %d objects that no manifest has any more: %s", len(d.Objects), d.Had,
		plan.JoinNames(d.names(), named))
}

// confirmation precedes the checksum in a message.
const confirmation = resourcesv1alpha1.AnnotationConfirmDeletion + "="

// Message returns the condition message of a waiting deletion (MRX-21). It depends only on the set of objects and on
// wait.
func (d Deletion) Message(wait time.Duration) string {
	return fmt.Sprintf("The deletion of %s. It begins when this condition has been visible for %s, or at once with the"+
		" annotation %s", strings.Replace(d.String(), ":", " waits, because "+d.Rule()+":", 1), wait, d.ToConfirm())
}

// ChecksumIn returns the first checksum in the message of a waiting deletion; empty if there is none.
func ChecksumIn(message string) string {
	match := asked.FindStringSubmatch(message)
	if match == nil {
		return ""
	}
	return match[1]
}

var asked = regexp.MustCompile(regexp.QuoteMeta(confirmation) + fmt.Sprintf(`([0-9a-f]{%d})\b`, 2*checksumBytes))

// Replacement returns the deletion of one object that is then created anew.
func Replacement(ref resourcesv1alpha1.ObjectReference) Deletion {
	return Deletion{Had: 1, Objects: []resourcesv1alpha1.ObjectReference{ref}}
}

// ToConfirm returns the annotation that confirms the deletion.
func (d Deletion) ToConfirm() string { return confirmation + d.Checksum() }

// Outcome is the decision about a deletion.
type Outcome int

// The zero value of Outcome waits.
const (
	// Waits ends the run without a change of the target.
	Waits Outcome = iota
	// Ordinary means that it is no mass deletion.
	Ordinary
	// Observed means that it is a mass deletion, but the configuration lets no deletion wait.
	Observed
	// Confirmed means that the annotation confirms the deletion.
	Confirmed
	// Elapsed means that it has waited long enough; the caller sets the annotation that confirms it.
	Elapsed
)

// Judge decides whether a deletion waits. confirmed is the value of the annotation; waited is the time for which this
// process has seen the condition about the deletion.
func (d Deletion) Judge(wait time.Duration, confirmed string, waited time.Duration) Outcome {
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
