// Package hold reads the annotations by which people suspend the repair of an object, or of all objects of a
// ManagedResource, for a limited time.
//
// Only the annotations and the time decide whether a hold is in force, so that a restart or a new leader changes
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
	// Longest is the longest time of a hold; a hold that ends later is refused. An emergency that lasts longer needs
	// a change of the manifest.
	Longest = 24 * time.Hour
	// clockSkew is the tolerated difference between the clock of the client that sets a hold and the clock of the
	// engine.
	clockSkew = time.Minute
	// longestReason limits a reason to this number of bytes, so that several reasons fit into the message of an
	// Event.
	longestReason = 200
)

// Annotations are the annotations that define a hold.
var Annotations = []string{
	resourcesv1alpha1.AnnotationLeaveAloneUntil, resourcesv1alpha1.AnnotationLeaveAloneReason,
}

// Digest returns a digest of the end of a hold; zero if there is no hold.
func Digest(annotations map[string]string) uint32 {
	until, found := annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil]
	if !found {
		return 0
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(until))
	return digest.Sum32() | 1
}

// State is the state of a hold at a given time.
type State int

// States of a hold. A hold that ended is Over; a hold that cannot be read, or that ends too late, is Refused.
const (
	None State = iota
	InForce
	Over
	Refused
)

// Hold is a hold as defined by annotations.
type Hold struct {
	State State
	// Until is the end of the hold.
	Until  time.Time
	Reason string
	// Refusal is the reason why the hold is refused.
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

// printable replaces control characters, so that a text fits into one line.
func printable(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)), " ")
}

// String returns the end and the reason of the hold.
func (h Hold) String() string {
	text := "until " + h.Until.UTC().Format(time.RFC3339)
	if h.Reason != "" {
		text += fmt.Sprintf(", for the reason %q", h.Reason)
	}
	return text
}

// SetBy returns the field manager that set the annotation, and the time of its last write; empty if the managed
// fields do not have them.
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

// Effect is the combined effect of the holds on an object and its ManagedResource. The zero value means no hold.
type Effect struct {
	// Until is the earliest end of the holds in force; zero if no hold is in force.
	Until time.Time
	// RemovesAnnotations is true if the object has annotations of a hold that is over or refused.
	RemovesAnnotations bool
}

// Together returns the combined effect of the holds on an object and its ManagedResource. Callers pass the zero Hold
// for an object if holds on objects are not allowed.
func Together(object, managedResource Hold) Effect {
	effect := Effect{RemovesAnnotations: object.State == Over || object.State == Refused}
	for _, h := range []Hold{object, managedResource} {
		if h.State == InForce && (effect.Until.IsZero() || h.Until.Before(effect.Until)) {
			effect.Until = h.Until
		}
	}
	return effect
}

// IsInForce reports whether the repair of the object is suspended.
func (e Effect) IsInForce() bool { return !e.Until.IsZero() }
