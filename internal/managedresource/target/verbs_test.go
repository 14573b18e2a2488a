package target

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MRX-19: an object is gone for a deletion if discovery says that the API of its kind cannot read it, and no request asks for that. An API that
// says nothing of its verbs is asked.
func TestKindsWithoutVerbs(t *testing.T) {
	for name, tc := range map[string]struct {
		verbs             []any
		getGone, delGone  bool
		wantGet, wantDels int
	}{
		"MRX-19/created only":      {[]any{"create"}, true, true, 0, 0},
		"MRX-19/read only":         {[]any{"get", "list"}, false, false, 1, 1},
		"MRX-19/all verbs":         {[]any{"get", "delete", "create", "watch"}, false, false, 1, 1},
		"MRX-19/nothing is said":   {nil, false, false, 1, 1},
		"MRX-19/an empty list":     {[]any{}, false, false, 1, 1},
		"MRX-19/deleted, not read": {[]any{"delete"}, true, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t)
			s.put(widgets, "n", "w", nil)
			s.mu.Lock()
			s.kinds[widgets].verbs = tc.verbs
			s.mu.Unlock()
			_, err := client.Get(t.Context(), widgets, "n", "w")
			if Gone(err) != tc.getGone || apierrors.IsNotFound(err) != tc.getGone {
				t.Errorf("MRX-19: reading it says %v, gone: %t", err, Gone(err))
			}
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(widgets)
			object.SetNamespace("n")
			object.SetName("w")
			if err := client.Delete(t.Context(), object, metav1.DeletePropagationBackground); Gone(err) != tc.delGone {
				t.Errorf("MRX-19: deleting it says %v, gone: %t", err, Gone(err))
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.requests["get"] != tc.wantGet || s.requests["delete"] != tc.wantDels {
				t.Errorf("MRX-19: %d reads and %d deletions are sent, want %d and %d", s.requests["get"], s.requests["delete"], tc.wantGet, tc.wantDels)
			}
		})
	}
}
