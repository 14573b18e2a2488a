package target

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// InStartupGrace reports whether the first list of autoscalers was less than autoscalerGrace ago: an autoscaler that
// was deleted shortly before that list is unknown to this process.
func (a *Autoscalers) InStartupGrace() bool {
	a.watches.mu.Lock()
	defer a.watches.mu.Unlock()
	return a.inheritedLocked() > 0
}

// inheritedLocked returns the remaining part of a grace that may have begun while another process led.
func (a *Autoscalers) inheritedLocked() time.Duration {
	if a.since.IsZero() {
		return 0
	}
	return autoscalerGrace - time.Since(a.since)
}

// Inherits reports whether an object counts as scaled because its last autoscaler may have been deleted while another
// process led: this process is in its startup grace, and the replicas were last set through the subresource scale.
// When the grace ends, the object is checked again.
func (a *Autoscalers) Inherits(key objects.ID, live metav1.Object) bool {
	if !isScaled(live) {
		return false
	}
	a.watches.mu.Lock()
	defer a.watches.mu.Unlock()
	left := a.inheritedLocked()
	if left <= 0 {
		return false
	}
	if a.leaving[key] == nil && a.count[key] == 0 {
		a.leaveLocked(key, left)
	}
	return true
}

// isScaled reports whether the replicas of an object were last set through its subresource scale.
func isScaled(object metav1.Object) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "scale" || entry.FieldsV1 == nil {
			continue
		}
		var set struct {
			Spec struct {
				Replicas json.RawMessage `json:"f:replicas"`
			} `json:"f:spec"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) == nil && set.Spec.Replicas != nil {
			return true
		}
	}
	return false
}
