package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

// MR-26, MR-33: a bare Pod gets what may be changed, keeps what admission added, and a change that is not allowed is one clear
// error that tells no content.
func TestBarePod(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	pod := func(image, command string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: $NS}\nspec:\n  containers: [{name: main, image: '" + image + "', command: [" + command + "]}]\n"
	}
	f.managed("mr", pod("i:1", "secret-word"))
	f.applied("mr", "True/ApplySucceeded")
	before := f.get("v1", "Pod", "p")
	f.annotateMR("mr", "gardener.cloud/operation", "reconcile")
	f.eventually(func() error {
		if _, there := f.mr("mr").Annotations["gardener.cloud/operation"]; there {
			return fmt.Errorf("not begun yet")
		}
		return nil
	})
	f.managed("marker", configMap("marker")) // Once this one is through, the other run is, too.
	f.applied("marker", "True/ApplySucceeded")
	f.applied("mr", "True/ApplySucceeded")
	expect.Equal(t, f.get("v1", "Pod", "p").GetResourceVersion(), before.GetResourceVersion(),
		"MR-26: a Pod that is as it should be was written")
	f.secret("mr", map[string]string{"data.yaml": pod("i:2", "secret-word")})
	f.eventually(func() error {
		containers, _, err := unstructured.NestedSlice(f.get("v1", "Pod", "p").Object, "spec", "containers")
		if err != nil || containers[0].(map[string]any)["image"] != "i:2" {
			return fmt.Errorf("containers are %v: %v", containers, err)
		}
		return nil
	})
	f.secret("mr", map[string]string{"data.yaml": pod("i:2", "other-word")})
	mr := f.applied("mr", "False/ApplyFailed", "v1/Pod/$NS/p")
	if _, message := harness.Condition(mr, "ResourcesApplied"); strings.Contains(message, "-word") {
		t.Errorf("MR-33: the message tells content: %s", message)
	}
}
