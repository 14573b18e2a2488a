package healthcheck

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/test/expect"
)

func TestBlocksDeletion(t *testing.T) {
	condition := func(conditionType, status, reason, message string) any {
		return map[string]any{"type": conditionType, "status": status, "reason": reason, "message": message}
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "status": map[string]any{"conditions": []any{
		condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", strings.Repeat("ä", 301)),
		condition("NamespaceDeletionDiscoveryFailure", "True", "DiscoveryFailed", "metrics.k8s.io/v1beta1 is stale"),
		condition("NamespaceDeletionContentFailure", "False", "ContentDeleted", "all is gone"), condition("Ready", "True", "x", "y"),
	}}}}
	want := []string{"DiscoveryFailed: metrics.k8s.io/v1beta1 is stale", "SomeFinalizersRemain: " + strings.Repeat("ä", 300) + "…"}
	expect.DeepEqual(t, BlocksDeletion(namespace), want, "MRX-12")
	namespace.SetKind("ConfigMap")
	got := BlocksDeletion(namespace)
	expect.True(t, got == nil, "MRX-12: another kind: %v", got)
}
