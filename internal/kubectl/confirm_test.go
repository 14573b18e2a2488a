package kubectl

import (
	"net/http/httptest"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
)

// CLI-32: confirm sets the annotation that the condition asks for, and nothing else.
func TestConfirm(t *testing.T) {
	const asks = "The deletion of 10 of 10 objects waits: a, b. It begins at once with the annotation resources.gardener.cloud/confirm-deletion="
	for name, c := range map[string]struct {
		reason, message, err string
		confirmed            any
	}{
		"CLI-32/it waits":        {resourcesv1alpha1.ReasonDeletionHeld, asks + "0123456789ab", "", "0123456789ab"},
		"CLI-32/nothing waits":   {resourcesv1alpha1.ReasonApplySucceeded, "All resources are applied.", "no deletion of ManagedResource n/x waits", nil},
		"CLI-32/an unknown form": {resourcesv1alpha1.ReasonDeletionHeld, asks + "more", "names no checksum", nil},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]any{}
			mr := named("resources.gardener.cloud/v1alpha1", "ManagedResource", annotations)
			mr["status"] = map[string]any{"conditions": []any{map[string]any{"type": "ResourcesApplied", "status": "False", "reason": c.reason, "message": c.message}}}
			store := &annotated{objects: map[string]map[string]any{"/apis/resources.gardener.cloud/v1alpha1/namespaces/n/managedresources/x": mr}}
			server := httptest.NewServer(store)
			defer server.Close()
			to, out := &connection{}, &strings.Builder{}
			to.parse(t, "-n", "n", "--kubeconfig", kubeconfig.File(t, server.URL))
			err := confirmDeletion(t.Context(), to, "x", out)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatal(err)
			}
			if got := annotations[resourcesv1alpha1.AnnotationConfirmDeletion]; got != c.confirmed || len(annotations) != store.patches {
				t.Errorf("the annotations are %v after %d patches", annotations, store.patches)
			}
			if err == nil && out.String() != c.message+"\nManagedResource n/x goes on\n" {
				t.Errorf("it prints %q", out)
			}
		})
	}
}
