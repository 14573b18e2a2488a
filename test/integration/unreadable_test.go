package integration

import (
	"strings"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// TestUnreadableKind shows that an object whose kind can be created, but not read, is an error that names the kind, beside other objects that are
// applied.
func TestUnreadableKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", "apiVersion: authorization.k8s.io/v1\nkind: SubjectAccessReview\nmetadata: {name: review}\nspec: {user: u, nonResourceAttributes: {path: /, verb: get}}\n"+configMap("cm"))
	f.rule("MRB-53: the condition names the kind").applied("mr", "False/ApplyFailed", `error during apply of object "authorization.k8s.io/v1/SubjectAccessReview/default/review": `,
		"cannot read objects of kind SubjectAccessReview of authorization.k8s.io/v1")
	f.rule("MR-24: other objects are applied").exists("v1", "ConfigMap", "cm")
	f.stays(2*time.Second, func() error {
		if got, message := harness.Condition(f.mr("mr"), resourcesv1alpha1.ResourcesApplied); !strings.Contains(message, "cannot read objects") {
			t.Errorf("MRB-53: the condition becomes %s: %s", got, message)
		}
		return nil
	})
}
