package rollout

import (
	"fmt"
	"slices"
	"strings"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// namedBad is the number of failed members that a condition names.
const namedBad = 5

// Held is the condition of a member whose content is held back. The message begins with the revision that waits, which
// RevisionIn finds.
func Held(group string, standing Standing, m *Member, wave, waves int, bad []Bad) meta.ConditionChange {
	change := meta.ConditionChange{Type: resourcesv1alpha1.RolloutHeld, Status: resourcesv1alpha1.ConditionTrue}
	switch standing {
	case Halted:
		change.Reason = resourcesv1alpha1.ReasonRolloutHalted
		change.Message = fmt.Sprintf("is held back, as roll-out group %s is halted: %s", group, Failures(bad))
	case Aborted:
		change.Reason = resourcesv1alpha1.ReasonRolloutAborted
		change.Message = fmt.Sprintf("is not applied, as it was aborted in roll-out group %s; a newer one will be", group)
	case Go, Waits:
		change.Reason = resourcesv1alpha1.ReasonRolloutWaiting
		does := "waits for its turn"
		if slices.ContainsFunc(bad, func(each Bad) bool { return each.Member == m }) {
			does = "did not take its turn"
		}
		change.Message = fmt.Sprintf("%s in wave %d of %d of roll-out group %s", does, wave, waves, group)
	}
	change.Message = m.begins() + change.Message
	return change
}

// Unguided is the condition of a member whose group cannot be read.
func Unguided(m *Member, why string) meta.ConditionChange {
	return meta.ConditionChange{
		Type: resourcesv1alpha1.RolloutHeld, Status: resourcesv1alpha1.ConditionTrue,
		Reason:  resourcesv1alpha1.ReasonRolloutGroupInvalid,
		Message: m.begins() + "is held back: " + why,
	}
}

// LetGo is the condition of a member of which no content is held back. It is not complete while objects have, or may
// have, their former content.
func LetGo(revision Revision, complete bool) meta.ConditionChange {
	change := meta.ConditionChange{
		Type: resourcesv1alpha1.RolloutHeld, Status: resourcesv1alpha1.ConditionFalse,
		Reason:  resourcesv1alpha1.ReasonRolloutLetGo,
		Message: revisionPrefix + string(revision) + " is not held back.",
	}
	if !complete {
		change.Reason = resourcesv1alpha1.ReasonRolloutIncomplete
		change.Message = revisionPrefix + string(revision) + " is not held back, and not in all objects yet."
	}
	return change
}

const revisionPrefix = "Revision "

func (m *Member) begins() string {
	return fmt.Sprintf("%s%s (now %s) ", revisionPrefix, m.Wanted, m.Applied)
}

// RevisionIn is the revision that a message of Held or Unguided begins with; empty if there is none.
func RevisionIn(message string) Revision {
	rest, found := strings.CutPrefix(message, revisionPrefix)
	if !found || len(rest) < revisionLength || strings.Trim(rest[:revisionLength], "0123456789abcdef") != "" {
		return ""
	}
	return Revision(rest[:revisionLength])
}

// Failures names the members that failed, and why.
func Failures(bad []Bad) string {
	texts := make([]string, 0, namedBad)
	for _, each := range bad[:min(len(bad), namedBad)] {
		texts = append(texts, fmt.Sprintf("%s failed (%s)", each.NamespacedName, each.Why))
	}
	if more := len(bad) - namedBad; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
