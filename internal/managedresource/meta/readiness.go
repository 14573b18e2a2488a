package meta

import (
	"slices"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// MessageReady is the message of Ready=True.
const MessageReady = "All resources are applied, healthy and rolled out."

var readiness = []resourcesv1alpha1.ConditionType{resourcesv1alpha1.Ready, resourcesv1alpha1.Reconciling,
	resourcesv1alpha1.Stalled}

// WithReadiness returns the list with the conditions of kstatus, which are derived from the others (T4-8). stalled is
// true if only new content can end a failure.
func (c Conditions) WithReadiness(now time.Time, stalled bool) (Conditions, bool) {
	status, cause := c.readiness()
	ready := ConditionChange{resourcesv1alpha1.Ready, status, cause.Reason, cause.Message}
	stalls := ConditionChange{resourcesv1alpha1.Stalled, resourcesv1alpha1.ConditionFalse, cause.Reason, cause.Message}
	reconciles := ConditionChange{resourcesv1alpha1.Reconciling, resourcesv1alpha1.ConditionFalse, cause.Reason,
		cause.Message}
	switch {
	case status == resourcesv1alpha1.ConditionTrue:
	case cause.Type == resourcesv1alpha1.ResourcesApplied &&
		(stalled || cause.Reason == resourcesv1alpha1.ReasonDecodingFailed):
		stalls.Status = resourcesv1alpha1.ConditionTrue
	case cause.Type != resourcesv1alpha1.ResourcesHealthy || status == resourcesv1alpha1.ConditionUnknown:
		reconciles.Status = resourcesv1alpha1.ConditionTrue
	}
	return c.With(now, ready, reconciles, stalls)
}

// readiness returns the status of Ready, and the first condition that prevents True.
func (c Conditions) readiness() (resourcesv1alpha1.ConditionStatus, ConditionChange) {
	applied := c.Get(resourcesv1alpha1.ResourcesApplied)
	if applied != nil && applied.Reason == resourcesv1alpha1.ReasonIgnored {
		return resourcesv1alpha1.ConditionTrue, changeOf(applied)
	}
	for _, needed := range []struct {
		conditionType resourcesv1alpha1.ConditionType
		good          resourcesv1alpha1.ConditionStatus
	}{
		{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue},
		{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse},
	} {
		condition := c.Get(needed.conditionType)
		switch {
		case condition == nil:
			return resourcesv1alpha1.ConditionUnknown,
				ConditionChange{needed.conditionType, "", resourcesv1alpha1.ReasonConditionInitialized, messageInitialized}
		case condition.Status == needed.good:
		case condition.Status == resourcesv1alpha1.ConditionFalse:
			return resourcesv1alpha1.ConditionFalse, changeOf(condition)
		default:
			return resourcesv1alpha1.ConditionUnknown, changeOf(condition)
		}
	}
	return resourcesv1alpha1.ConditionTrue,
		ConditionChange{resourcesv1alpha1.Ready, "", resourcesv1alpha1.ReasonResourcesReady, MessageReady}
}

func changeOf(condition *resourcesv1alpha1.Condition) ConditionChange {
	return ConditionChange{condition.Type, condition.Status, condition.Reason, condition.Message}
}

// WithoutReadiness returns the list without the conditions of kstatus if it has all three, because an instance that
// writes them has left them.
func (c Conditions) WithoutReadiness() (Conditions, bool) {
	if slices.ContainsFunc(readiness, func(t resourcesv1alpha1.ConditionType) bool { return c.Get(t) == nil }) {
		return c, false
	}
	return slices.DeleteFunc(slices.Clone(c),
		func(condition resourcesv1alpha1.Condition) bool { return slices.Contains(readiness, condition.Type) }), true
}
