package merge

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/test/expect"
)

// TestMerge_FollowsTheTableOfWorkloads: one table of kinds decides about replicas and resources.
func TestMerge_FollowsTheTableOfWorkloads(t *testing.T) {
	const template = "spec: {resources: {limits: {cpu: '%[1]s'}}, containers: [{name: c, image: i, resources: {requests: {cpu: '%[1]s'}}}], initContainers: [{name: c, image: i, resources: {requests: {cpu: '%[1]s'}}}]}"
	of := func(apiVersion, kind, replicas, cpu, annotation string) string {
		text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x, namespace: n, annotations: {%s}}\n", apiVersion, kind, annotation)
		pod := fmt.Sprintf(template, cpu)
		switch kind {
		case "Pod":
			return text + pod + "\n"
		case "CronJob":
			return text + "spec: {jobTemplate: {spec: {template: {" + pod + "}}}}\n"
		}
		return text + "spec: {replicas: " + replicas + ", template: {" + pod + "}}\n"
	}
	for name, c := range map[string]struct {
		apiVersion, kind string
		replicas, pods   bool
	}{
		"T4-7/MRM-1/Deployment":         {"apps/v1", "Deployment", true, true},
		"T4-7/MRM-4/StatefulSet":        {"apps/v1", "StatefulSet", true, true},
		"T4-7/MRM-17/ReplicaSet":        {"apps/v1", "ReplicaSet", true, true},
		"T4-7/MRM-17/an old ReplicaSet": {"extensions/v1beta1", "ReplicaSet", true, true},
		"T4-7/MRM-17/Controller":        {"v1", "ReplicationController", true, true},
		"T4-7/MRM-17/a custom kind":     {"example.org/v1", "Web", true, false},
		"T4-7/MRM-5/DaemonSet":          {"apps/v1", "DaemonSet", false, true},
		"T4-7/MRM-6/Job":                {"batch/v1", "Job", false, true},
		"T4-7/MRM-7/CronJob":            {"batch/v1", "CronJob", false, true},
		"T4-7/MRM-18/Pod":               {"v1", "Pod", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			live := fromYAML(t, of(c.apiVersion, c.kind, "5", "2", ""))
			merge := func(annotation string, scaled bool) string {
				merged := Merge(desiredFrom(t, of(c.apiVersion, c.kind, "1", "1", annotation)), live, Options{Origin: "n/m", HorizontallyScaled: scaled})
				return seen(merged, c.kind)
			}
			want := func(replicas, pods bool) string {
				text := map[bool]string{true: "5", false: "1"}[replicas] + ", " + map[bool]string{true: "[2 2 2]", false: "[1 1 1]"}[pods]
				if c.kind == "Pod" || c.kind == "CronJob" {
					text = "<nil>" + text[1:]
				}
				return text
			}
			expect.Equal(t, merge("", false), want(false, false), "it becomes")
			expect.Equal(t, merge("resources.gardener.cloud/preserve-resources: 'true'", false), want(false, c.pods), "preserving resources it becomes")
			for how, got := range map[string]string{"preserving": merge("resources.gardener.cloud/preserve-replicas: 'true'", false), "scaled": merge("", true)} {
				expect.Equal(t, got, want(c.replicas, false), "%s it becomes", how)
			}
		})
	}
}

// seen are the replicas of an object, and the CPUs of its Pod, its container and its init container.
func seen(object *unstructured.Unstructured, kind string) string {
	path := map[string][]string{"Pod": {}, "CronJob": cronJobPodTemplate}[kind]
	if path == nil {
		path = podTemplate
	}
	replicas, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
	pod := object.Object
	if len(path) > 0 {
		pod, _, _ = unstructured.NestedMap(object.Object, path...)
	}
	cpu, _, _ := unstructured.NestedString(pod, "spec", "resources", "limits", "cpu")
	cpus := []string{cpu}
	for _, list := range containerLists {
		for _, container := range containers(pod, list) {
			cpu, _, _ := unstructured.NestedString(container, "resources", "requests", "cpu")
			cpus = append(cpus, cpu)
		}
	}
	return fmt.Sprint(replicas, ", ", cpus)
}

// TestResize_RestoresResourcesOfPods: a Pod that others resized gets the resources of its manifest, in a form that the API server accepts.
func TestResize_RestoresResourcesOfPods(t *testing.T) {
	for name, c := range map[string]struct{ live, manifest, want string }{
		"MRM-18/limits and requests":        {"{limits: {cpu: '2'}, requests: {cpu: '2'}}", "{limits: {cpu: '1'}, requests: {cpu: '1'}}", "map[limits:map[cpu:1] requests:map[cpu:1]]"},
		"MRM-18/requests that follow":       {"{limits: {cpu: '2'}, requests: {cpu: '2'}}", "{limits: {cpu: '1'}}", "map[limits:map[cpu:1] requests:map[cpu:1]]"},
		"MRM-18/requests that follow up":    {"{limits: {cpu: 500m}, requests: {cpu: 500m}}", "{limits: {cpu: 1}}", "map[limits:map[cpu:1] requests:map[cpu:1]]"},
		"MRM-18/requests that would exceed": {"{limits: {cpu: '3'}, requests: {cpu: '2'}}", "{limits: {cpu: '1'}}", "map[limits:map[cpu:1] requests:map[cpu:1]]"},
		"MRM-18/requests that fit":          {"{limits: {cpu: '3'}, requests: {cpu: 500m}}", "{limits: {cpu: '1'}}", "map[limits:map[cpu:1] requests:map[cpu:500m]]"},
		"MRM-18/another resource stays":     {"{limits: {cpu: '2', memory: 1Mi}}", "{limits: {cpu: '1'}}", "map[limits:map[cpu:1 memory:1Mi]]"},
		"MRM-18/the same":                   {"{limits: {cpu: '1'}, requests: {cpu: '1'}}", "{limits: {cpu: 1000m}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: n}\nspec: {nodeName: x, containers: [{name: c, image: i, resources: %s}]}\n"
			live := fromYAML(t, fmt.Sprintf(text, c.live))
			before := live.DeepCopy()
			merged := Merge(desiredFrom(t, fmt.Sprintf(text, c.manifest)), live, Options{Origin: "n/m"})
			resized, got := Resize(live, merged), ""
			if resized != nil {
				got = fmt.Sprint(containers(resized.Object, "containers")[0]["resources"])
				if err := CheckUpdate(resized, merged); err != nil {
					t.Errorf("the rest is refused: %v", err)
				}
			}
			expect.Equal(t, got, c.want, "it gets")
			expect.True(t, unstructuredEqual(before, live), "the live Pod was changed")
		})
	}
	if Resize(fromYAML(t, "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 1}\n"), fromYAML(t, "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 2}\n")) != nil {
		t.Error("MRM-18: a Deployment is resized")
	}
}
