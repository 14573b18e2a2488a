package merge

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const annotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

var (
	podTemplate        = []string{"spec", "template"}
	cronJobPodTemplate = []string{"spec", "jobTemplate", "spec", "template"}
)

// mergeDeployment is MRM-1.
func mergeDeployment(c mergeContext) {
	keepCounted(c, prefixDeployment)
	mergeReplicas(c)
	mergePodTemplate(c, podTemplate)
}

// mergeStatefulSet is MRM-4: volumeClaimTemplates are immutable.
func mergeStatefulSet(c mergeContext) {
	mergeReplicas(c)
	mergePodTemplate(c, podTemplate)
	keepLive(c, "spec", "volumeClaimTemplates")
}

// mergeDaemonSet is MRM-5.
func mergeDaemonSet(c mergeContext) {
	keepCounted(c, annotationTemplateNumber)
	mergePodTemplate(c, podTemplate)
}

// mergeJob is MRM-6: the selector and the labels that tie the Pods to the Job are the API server's.
func mergeJob(c mergeContext) {
	keepLive(c, "spec", "selector")
	liveLabels, _, _ := unstructured.NestedMap(c.live.Object, "spec", "template", "metadata", "labels")
	if len(liveLabels) > 0 {
		desiredLabels, _, _ := unstructured.NestedMap(c.desired.Object, "spec", "template", "metadata", "labels")
		maps.Copy(liveLabels, desiredLabels)
		setNested(c.merged.Object, liveLabels, "spec", "template", "metadata", "labels")
	}
	mergePodTemplate(c, podTemplate)
}

// mergeCronJob is MRM-7.
func mergeCronJob(c mergeContext) { mergePodTemplate(c, cronJobPodTemplate) }

func mergeReplicas(c mergeContext) {
	replicas, set, _ := unstructured.NestedFieldNoCopy(c.desired.Object, "spec", "replicas")
	if !set || replicas == nil || c.preserveReplicas {
		keepLive(c, "spec", "replicas")
	}
}

// mergePodTemplate is MRM-2 and MRM-3; with preserve-resources the whole resources of every live container that has any
// are kept, init containers included (decision R10).
func mergePodTemplate(c mergeContext, path []string) {
	liveTemplate, _, _ := unstructured.NestedFieldNoCopy(c.live.Object, path...)
	mergedTemplate, _, _ := unstructured.NestedFieldNoCopy(c.merged.Object, path...)
	live, _ := liveTemplate.(map[string]any)
	merged, _ := mergedTemplate.(map[string]any)
	if live == nil || merged == nil {
		return
	}
	if restartedAt, found, _ := unstructured.NestedString(live, "metadata", "annotations", annotationRestartedAt); found {
		setNested(merged, restartedAt, "metadata", "annotations", annotationRestartedAt)
	}
	if c.preserveResources {
		for _, list := range []string{"containers", "initContainers"} {
			preserveResources(live, merged, list)
		}
	}
}

func preserveResources(live, merged map[string]any, list string) {
	liveResources := map[string]map[string]any{}
	for _, container := range containers(live, list) {
		name, _ := container["name"].(string)
		resources, _ := container["resources"].(map[string]any)
		liveResources[name] = resources
	}
	for _, container := range containers(merged, list) {
		name, _ := container["name"].(string)
		if kept := liveResources[name]; len(kept) > 0 {
			container["resources"] = kept
		}
	}
}

func containers(template map[string]any, list string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(template, "spec", list)
	items, _ := value.([]any)
	var result []map[string]any
	for _, item := range items {
		if container, ok := item.(map[string]any); ok {
			result = append(result, container)
		}
	}
	return result
}
