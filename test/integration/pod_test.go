package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		return expect.Holds(err == nil && containers[0].(map[string]any)["image"] == "i:2", "containers are %v: %v", containers, err)
	})
	f.secret("mr", map[string]string{"data.yaml": pod("i:2", "other-word")})
	mr := f.applied("mr", "False/ApplyFailed", "v1/Pod/$NS/p")
	if _, message := harness.Condition(mr, "ResourcesApplied"); strings.Contains(message, "-word") {
		t.Errorf("MR-33: the message tells content: %s", message)
	}
}

// TestResizedPod: somebody resizes a managed Pod in place; it gets the resources of its manifest again, and keeps others if the manifest says so.
func TestResizedPod(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if f.minor() < 33 {
		t.Skip("Pods cannot be resized in place before Kubernetes 1.33")
	}
	pod := func(name, annotations string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: $NS, annotations: {" + annotations + "}}\n" +
			"spec: {containers: [{name: main, image: 'i:1', resources: {limits: {cpu: 100m, memory: 1Gi}}}]}\n"
	}
	f.managed("mr", pod("repaired", "")+pod("preserved", "resources.gardener.cloud/preserve-resources: 'true'"))
	f.applied("mr", "True/ApplySucceeded")
	cpus := func(name string) string {
		containers, _, _ := unstructured.NestedSlice(f.get("v1", "Pod", name).Object, "spec", "containers")
		main, _ := containers[0].(map[string]any)
		limit, _, _ := unstructured.NestedString(main, "resources", "limits", "cpu")
		request, _, _ := unstructured.NestedString(main, "resources", "requests", "cpu")
		return limit + " " + request
	}
	resize := func(name string) {
		resources := map[string]any{"limits": map[string]any{"cpu": "200m"}, "requests": map[string]any{"cpu": "200m"}}
		raw, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "resources": resources}}}})
		f.must(err)
		f.must(f.shoot.SubResource("resize").Patch(f.ctx, f.get("v1", "Pod", name), client.RawPatch(types.StrategicMergePatchType, raw)))
	}
	resize("preserved")
	resize("repaired")
	f.eventually(func() error {
		if got := cpus("repaired"); got != "100m 100m" {
			return fmt.Errorf("T4-7/MRM-18: the Pod has CPUs %s", got)
		}
		return nil
	})
	f.applied("mr", "True/ApplySucceeded")
	expect.Equal(t, cpus("preserved"), "200m 200m", "T4-7/MRM-3: the preserved Pod has CPUs")
	f.secret("mr", map[string]string{"data.yaml": strings.ReplaceAll(pod("repaired", ""), "limits: {cpu: 100m", "requests: {cpu: 50m}, limits: {cpu: 100m")})
	f.applied("mr", "False/ApplyFailed", "v1/Pod/$NS/repaired", "QOS Class")
}
