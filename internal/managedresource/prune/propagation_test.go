package prune

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/expect"
)

// MRX-8: workloads are deleted in the foreground, so that their Pods are gone with them; the API server chooses for all others.
func TestPropagation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		group string
		want  metav1.DeletionPropagation
	}{
		"MRX-8/Deployments":                {"apps", metav1.DeletePropagationForeground},
		"MRX-8/Deployments of old":         {"extensions", metav1.DeletePropagationForeground},
		"MRX-8/Jobs":                       {"batch", metav1.DeletePropagationForeground},
		"MRX-8/the core group":             {"", ""},
		"MRX-8/RBAC":                       {"rbac.authorization.k8s.io", ""},
		"MRX-8/a group that ends the same": {"kruise.apps", ""},
		"MRX-8/a group with more behind":   {"batch.volcano.sh", ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, propagation(tc.group), tc.want, "MRX-8: group %q", tc.group)
		})
	}
}
