package source

import (
	"slices"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// judgementPause is the least time between two writes of one condition of health (MRB-39). Otherwise, an object whose
// readiness flaps ten times a second would cause a status write each time. No reader acts on a change that lasts for
// less than a second.
const judgementPause = time.Second

// pace has the times at which judgements of conditions were written. A ManagedResource has two such conditions.
type pace []judgedAt

type judgedAt struct {
	condition resourcesv1alpha1.ConditionType
	at        time.Time
}

// due returns the judgements that change a condition and may be written now, and the time until the others may be
// written; zero if there are no others. The first judgement of new content is never delayed. If one judgement is due,
// the others share its write.
func (p pace) due(conditions meta.Conditions, judgements []meta.ConditionChange,
	now time.Time) (due []meta.ConditionChange, later time.Duration) {
	var delayed []meta.ConditionChange
	for _, judgement := range judgements {
		if _, changed := conditions.With(now, judgement); !changed {
			continue
		}
		wait := time.Duration(0)
		if i := p.of(judgement.Type); i >= 0 {
			wait = p[i].at.Add(judgementPause).Sub(now)
		}
		status := conditions.Status(judgement.Type)
		if status == "" || status == resourcesv1alpha1.ConditionUnknown || wait <= 0 {
			due = append(due, judgement)
			continue
		}
		delayed, later = append(delayed, judgement), max(later, wait)
	}
	if len(due) > 0 {
		return append(due, delayed...), 0
	}
	return nil, later
}

func (p pace) of(condition resourcesv1alpha1.ConditionType) int {
	return slices.IndexFunc(p, func(j judgedAt) bool { return j.condition == condition })
}

// wrote records judgements that were written.
func (p *pace) wrote(judgements []meta.ConditionChange, now time.Time) {
	for _, judgement := range judgements {
		if i := p.of(judgement.Type); i >= 0 {
			(*p)[i].at = now
		} else {
			*p = append(*p, judgedAt{judgement.Type, now})
		}
	}
}
