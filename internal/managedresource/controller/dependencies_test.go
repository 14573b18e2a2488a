package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestApplier_UnknownAutoscalers shows that only objects whose replicas an autoscaler may own wait while the autoscalers cannot be listed.
func TestApplier_UnknownAutoscalers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m")
	f.target.breaks("/apis/autoscaling/v1")
	deployment := func(name string) string {
		return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: 'n', name: " + name + "}\nspec: {replicas: 1}\n"
	}
	f.manifests("m", "2", deployment("b"), deployment("a"), configMap("c", "1", ""))
	_, err := f.run("m")
	got := fmt.Sprint(f.present())
	expect.Equal(t, got, "[c]", "MR-20: there are %s, want [c]", got)
	const want = "2 objects were not applied, because failed to compute all HPA target ref object keys: failed to list all HPAs: "
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ": apps/v1/Deployment/n/a, apps/v1/Deployment/n/b") {
		t.Errorf("MRB-4: the error is %v", err)
	}
}
