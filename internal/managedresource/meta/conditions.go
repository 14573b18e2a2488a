package meta

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// Texts of conditions (MRS-5 … MRS-12, MRH-10, MRP-6).
const (
	MessageApplied            = "All resources are applied."
	MessageApplying           = "The resources are currently being reconciled."
	MessageDeleting           = "The resources are currently being deleted."
	MessageHealthy            = "All resources are healthy."
	MessageHealthPending      = "The health checks have not yet been executed for the current set of resources."
	MessageRolledOut          = "All resources have been fully rolled out."
	MessageProgressingPending = "Checks have not yet been executed for the current set of resources."
	MessageIgnored            = "ManagedResource is marked to be ignored."
	messageInitialized        = "The condition has been initialized but its semantic check has not been performed yet."
)

// ConditionChange is the desired content of a condition.
type ConditionChange struct {
	Type    resourcesv1alpha1.ConditionType
	Status  resourcesv1alpha1.ConditionStatus
	Reason  string
	Message string
}

// Conditions are the conditions of a ManagedResource, whose order is kept (MRS-3).
type Conditions []resourcesv1alpha1.Condition

// Get returns the condition of a type, or nil if there is none.
func (c Conditions) Get(conditionType resourcesv1alpha1.ConditionType) *resourcesv1alpha1.Condition {
	for i := range c {
		if c[i].Type == conditionType {
			return &c[i]
		}
	}
	return nil
}

// Status returns the status of the condition of a type, or "" if there is none.
func (c Conditions) Status(conditionType resourcesv1alpha1.ConditionType) resourcesv1alpha1.ConditionStatus {
	if condition := c.Get(conditionType); condition != nil {
		return condition.Status
	}
	return ""
}

// With returns the list after the changes, and whether it differs from the list before. It does not change its
// receiver (MRS-2, MRS-3).
func (c Conditions) With(now time.Time, changes ...ConditionChange) (Conditions, bool) {
	result := slices.Clone(c)
	changed := false
	for _, change := range changes {
		condition := result.Get(change.Type)
		if condition == nil {
			result = append(result, initialCondition(change.Type, now))
			condition = &result[len(result)-1]
			changed = true
		}
		if change.applyTo(condition, now) {
			changed = true
		}
	}
	return result, changed
}

func initialCondition(conditionType resourcesv1alpha1.ConditionType, now time.Time) resourcesv1alpha1.Condition {
	return resourcesv1alpha1.Condition{
		Type:               conditionType,
		Status:             resourcesv1alpha1.ConditionUnknown,
		Reason:             resourcesv1alpha1.ReasonConditionInitialized,
		Message:            messageInitialized,
		LastTransitionTime: metav1.NewTime(now),
		LastUpdateTime:     metav1.NewTime(now),
	}
}

func (change ConditionChange) applyTo(condition *resourcesv1alpha1.Condition, now time.Time) bool {
	reason, message := change.Reason, Shortened(change.Message, MaxMessage)
	if reason == "" {
		reason = "Unspecified"
	}
	if message == "" {
		message = "No message given."
	}
	changed := false
	if condition.Status != change.Status {
		condition.Status = change.Status
		condition.LastTransitionTime = metav1.NewTime(now)
		changed = true
	}
	if condition.Reason != reason || condition.Message != message || len(condition.Codes) > 0 {
		condition.Reason, condition.Message, condition.Codes = reason, message, nil
		condition.LastUpdateTime = metav1.NewTime(now)
		changed = true
	}
	return changed
}

// Invalidation returns the changes for new content (MRS-5). A failure to apply stays in the condition while the same
// content is retried, so that the condition does not change at every attempt (MRB-19).
func (c Conditions) Invalidation(sameContentAsLastAttempt bool) []ConditionChange {
	applied := ConditionChange{
		resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionProgressing,
		resourcesv1alpha1.ReasonApplyProgressing, MessageApplying,
	}
	if current := c.Get(resourcesv1alpha1.ResourcesApplied); current != nil {
		switch current.Reason {
		case resourcesv1alpha1.ReasonApplyFailed, resourcesv1alpha1.ReasonDeletionFailed,
			resourcesv1alpha1.ReasonDeletionPending:
			applied.Reason, applied.Message = current.Reason, current.Message
			if sameContentAsLastAttempt {
				applied.Status = current.Status
			}
		case resourcesv1alpha1.ReasonReleaseOfOrphansFailed:
			if sameContentAsLastAttempt {
				applied.Status, applied.Reason, applied.Message = current.Status, current.Reason, current.Message
			}
		}
	}
	return []ConditionChange{
		{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionUnknown, resourcesv1alpha1.ReasonChecksPending,
			MessageHealthPending},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionUnknown, resourcesv1alpha1.ReasonChecksPending,
			MessageProgressingPending},
		applied,
	}
}

// IgnoredChanges returns the conditions of a ManagedResource that is ignored (MRS-12).
func IgnoredChanges() []ConditionChange {
	return []ConditionChange{
		{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonIgnored,
			MessageIgnored},
		{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonIgnored,
			MessageIgnored},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonIgnored,
			MessageIgnored},
	}
}

// DeletingChanges returns the health conditions when the objects are about to be deleted (MRX-1).
func DeletingChanges() []ConditionChange {
	return []ConditionChange{
		{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDeletionPending,
			MessageDeleting},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonDeletionPending,
			MessageDeleting},
	}
}

// Applied returns a change of ResourcesApplied.
func Applied(status resourcesv1alpha1.ConditionStatus, reason, message string) ConditionChange {
	return ConditionChange{resourcesv1alpha1.ResourcesApplied, status, reason, message}
}
