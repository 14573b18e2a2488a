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
	"github.com/espalier-project/espalier/internal/managedresource/fieldpointer"
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
	resourcesv1alpha1.AnnotationLeaveAloneUntil, resourcesv1alpha1.AnnotationLeaveAloneFields,
	resourcesv1alpha1.AnnotationLeaveAloneReason,
}

// Digest stands for the fields and the end of a hold; zero if there is no hold.
func Digest(annotations map[string]string) uint32 {
	until, found := annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil]
	if !found {
		return 0
	}
	digest := fnv.New32a()
	_, _ = fmt.Fprintf(digest, "%q", []string{until, annotations[resourcesv1alpha1.AnnotationLeaveAloneFields]})
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
	Until time.Time
	// Fields are the fields under the hold; none means the whole object.
	Fields []fieldpointer.Pointer
	Reason string
	// Refusal is the reason why it is refused.
	Refusal error
}

// Of reads the hold from the annotations of an object, or of a ManagedResource, at the time now. group and kind are
// those of the object, and are empty for a ManagedResource.
func Of(annotations map[string]string, group, kind string, now time.Time) Hold {
	text, found := annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil]
	if !found {
		return Hold{}
	}
	h := Hold{State: InForce, Reason: meta.Shortened(printable(annotations[resourcesv1alpha1.AnnotationLeaveAloneReason]),
		longestReason)}
	var err error
	if h.Until, err = time.Parse(time.RFC3339, text); err != nil {
		return refused(resourcesv1alpha1.AnnotationLeaveAloneUntil, errors.New("is no time such as 2006-01-02T15:04:05Z"))
	}
	if !now.Before(h.Until) {
		h.State = Over
		return h
	}
	if h.Until.After(now.Add(Longest + clockSkew)) {
		return refused(resourcesv1alpha1.AnnotationLeaveAloneUntil, fmt.Errorf("is more than %s away", Longest))
	}
	fields, limited := annotations[resourcesv1alpha1.AnnotationLeaveAloneFields]
	if !limited {
		return h
	}
	if h.Fields, err = fieldpointer.ParseList(fields); err == nil {
		err = fieldpointer.Check(h.Fields, group, kind)
	}
	if err == nil && len(h.Fields) == 0 {
		err = errors.New("names no field")
	}
	if err != nil {
		return refused(resourcesv1alpha1.AnnotationLeaveAloneFields, err)
	}
	return h
}

func refused(annotation string, err error) Hold {
	return Hold{State: Refused, Refusal: fmt.Errorf("annotation %s: %w", annotation, err)}
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

// IsWhole reports whether nothing of the object is repaired.
func (h Hold) IsWhole() bool { return h.State == InForce && len(h.Fields) == 0 }

// String describes the hold to people: its fields, its end and its reason.
func (h Hold) String() string {
	text := "until " + h.Until.UTC().Format(time.RFC3339)
	if len(h.Fields) > 0 {
		names := make([]string, len(h.Fields))
		for i, field := range h.Fields {
			names[i] = field.String()
		}
		text += " at " + strings.Join(names, ", ")
	}
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

// Fate is the treatment of the hold annotations on an object.
type Fate int

// Fates of the annotations: they are treated as all other annotations, they stay, or they are removed.
const (
	AsOthers Fate = iota
	Stay
	Removed
)

// Effect is the combined effect of the holds on an object and its ManagedResource on a merge.
type Effect struct {
	// Whole is true if nothing is repaired; otherwise Fields are the fields that are left alone.
	Whole  bool
	Fields []fieldpointer.Pointer
	// Fate is that of the annotations on the object.
	Fate Fate
	// Until is the end of the first of the holds in force; zero if none is.
	Until time.Time
}

// Together is the effect of two holds; nil if there is none. An object that must not be held has none of its own.
func Together(object, managedResource Hold) *Effect {
	if object.State == None && managedResource.State != InForce {
		return nil
	}
	effect := &Effect{}
	switch object.State {
	case InForce:
		effect.Fate = Stay
	case Over, Refused:
		effect.Fate = Removed
	case None:
	}
	for _, h := range []Hold{object, managedResource} {
		if h.State != InForce {
			continue
		}
		effect.Whole = effect.Whole || h.IsWhole()
		effect.Fields = append(effect.Fields, h.Fields...)
		if effect.Until.IsZero() || h.Until.Before(effect.Until) {
			effect.Until = h.Until
		}
	}
	return effect
}

// IsInForce reports whether something is left alone.
func (e *Effect) IsInForce() bool { return e != nil && !e.Until.IsZero() }
