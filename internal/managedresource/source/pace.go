package source

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// judgementPause is the least time between two writes of one condition of health (MRB-39). An object whose readiness
// flaps ten times a second would otherwise cost as many status writes as the judgements can make. No reader acts on a
// change that lasts for less than a second.
const judgementPause = time.Second

// pace has the times at which judgements of conditions were written.
//
// Invariant: an entry is needed for judgementPause only, and each write drops those that are older, so that there are
// no more entries than ManagedResources whose health was written in the last second before the last write.
type pace map[types.NamespacedName]map[resourcesv1alpha1.ConditionType]time.Time

// due returns the judgements that change a condition and may be written now, and the time until the others may be,
// zero if there are no others. The first judgement of new content is never held back. If one judgement is due, the
// others share its write.
func (p pace) due(key types.NamespacedName, conditions meta.Conditions, judgements []meta.ConditionChange,
	now time.Time) (due []meta.ConditionChange, later time.Duration) {
	var held []meta.ConditionChange
	for _, judgement := range judgements {
		if _, changed := conditions.With(now, judgement); !changed {
			continue
		}
		wait := p[key][judgement.Type].Add(judgementPause).Sub(now)
		status := conditions.Status(judgement.Type)
		if status == "" || status == resourcesv1alpha1.ConditionUnknown || wait <= 0 {
			due = append(due, judgement)
			continue
		}
		held, later = append(held, judgement), max(later, wait)
	}
	if len(due) > 0 {
		return append(due, held...), 0
	}
	return nil, later
}

// wrote records judgements that were written.
func (p pace) wrote(key types.NamespacedName, judgements []meta.ConditionChange, now time.Time) {
	if len(judgements) == 0 {
		return
	}
	for other, times := range p {
		maps.DeleteFunc(times, func(_ resourcesv1alpha1.ConditionType, at time.Time) bool {
			return now.Sub(at) >= judgementPause
		})
		if len(times) == 0 {
			delete(p, other)
		}
	}
	if p[key] == nil {
		p[key] = map[resourcesv1alpha1.ConditionType]time.Time{}
	}
	for _, judgement := range judgements {
		p[key][judgement.Type] = now
	}
}
