package target

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// InStartupGrace reports whether the autoscalers have been known for less than autoscalerGrace: an autoscaler that
// went since then, or shortly before, may not be on record.
func (a *Autoscalers) InStartupGrace() bool {
	a.watches.mu.Lock()
	defer a.watches.mu.Unlock()
	return a.inheritedLocked() > 0
}

// inheritedLocked returns the rest of the grace that may have begun while another process led.
func (a *Autoscalers) inheritedLocked() time.Duration {
	if a.since.IsZero() {
		return 0
	}
	return autoscalerGrace - time.Since(a.since)
}

// Inherits reports whether an object counts as scaled, as its last autoscaler may have gone while another process led:
// the autoscalers are not known for long, and its replicas were last set through the subresource scale. That ends with
// the grace, and the object is checked again then.
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
