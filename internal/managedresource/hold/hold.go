// Package hold reads the annotations by which people suspend the repair of an object, or of all objects of a
// ManagedResource, for a while.
//
// The annotations and the time alone decide whether a hold is in force, so that a restart, or another leader, changes
// nothing. The package has pure functions only: the callers pass the time.
package hold

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

const (
	// Longest is the longest time for which anything is left alone: an emergency that lasts longer needs a change of the
	// manifest. A hold that ends later is refused.
	Longest = 24 * time.Hour
	// clockSkew is the tolerated lead of the clock of a client that sets a hold over the engine's clock.
	clockSkew = time.Minute
	// longestReason is the number of bytes of a reason that are passed on: several reasons fit into the message of an
	// Event.
	longestReason = 200
)

// Annotations are the keys of a hold.
var Annotations = []string{
	resourcesv1alpha1.AnnotationLeaveAloneUntil, resourcesv1alpha1.AnnotationLeaveAloneReason,
}

// Digest stands for the end of a hold; zero if there is no hold.
func Digest(annotations map[string]string) uint32 {
	until, found := annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil]
	if !found {
		return 0
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(until))
	return digest.Sum32() | 1
}

// State is the state of a hold at a moment.
type State int

// States of a hold. A hold that ended is Over; a hold that cannot be read, or that ends too late, is Refused.
const (
	None State = iota
	InForce
	Over
	Refused
)

// Hold is a hold as annotations state it.
type Hold struct {
	State State
	// Until is its end.
	Until  time.Time
	Reason string
	// Refusal is the reason why it is refused.
	Refusal error
}

// Of reads the hold from the annotations of an object, or of a ManagedResource, at the time now.
func Of(annotations map[string]string, now time.Time) Hold {
	text, found := annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil]
	if !found {
		return Hold{}
	}
	h := Hold{State: InForce, Reason: meta.Shortened(printable(annotations[resourcesv1alpha1.AnnotationLeaveAloneReason]),
		longestReason)}
	var err error
	if h.Until, err = time.Parse(time.RFC3339, text); err != nil {
		return refused(errors.New("is no time such as 2006-01-02T15:04:05Z"))
	}
	if !now.Before(h.Until) {
		h.State = Over
		return h
	}
	if h.Until.After(now.Add(Longest + clockSkew)) {
		return refused(fmt.Errorf("is more than %s away", Longest))
	}
	return h
}

func refused(err error) Hold {
	return Hold{State: Refused, Refusal: fmt.Errorf("annotation %s: %w", resourcesv1alpha1.AnnotationLeaveAloneUntil, err)}
}

// printable is a text in one line.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)), " ")
}

// String describes the hold to people: its end and its reason.
func (h Hold) String() string {
	text := "until " + h.Until.UTC().Format(time.RFC3339)
	if h.Reason != "" {
		text += fmt.Sprintf(", for the reason %q", h.Reason)
	}
	return text
}

// SetBy returns the field manager that wrote the annotation, and when that manager last wrote; empty if the managed
// fields do not say.
func SetBy(fields []metav1.ManagedFieldsEntry) (manager string, at time.Time) {
	for _, entry := range fields {
		if entry.FieldsV1 == nil || !strings.Contains(entry.FieldsV1.GetRawString(),
			`"f:`+resourcesv1alpha1.AnnotationLeaveAloneUntil+`"`) {
			continue
		}
		if entry.Time != nil {
			at = entry.Time.Time
		}
		return entry.Manager, at
	}
	return "", time.Time{}
}

// Effect is the combined effect of the holds on an object and its ManagedResource on a merge. The zero value is that of
// no hold.
type Effect struct {
	// Until is the end of the first of the holds in force; zero if none is.
	Until time.Time
	// RemovesAnnotations is true if the object has the annotations of a hold that is over or refused.
	RemovesAnnotations bool
}

// Together is the effect of two holds. An object that must not be held has none of its own.
func Together(object, managedResource Hold) Effect {
	effect := Effect{RemovesAnnotations: object.State == Over || object.State == Refused}
	for _, h := range []Hold{object, managedResource} {
		if h.State == InForce && (effect.Until.IsZero() || h.Until.Before(effect.Until)) {
			effect.Until = h.Until
		}
	}
	return effect
}

// IsInForce reports whether the object is not repaired.
func (e Effect) IsInForce() bool { return !e.Until.IsZero() }
