package merge

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const annotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

var (
	podTemplate        = []string{"spec", "template"}
	cronJobPodTemplate = []string{"spec", "jobTemplate", "spec", "template"}
)

// workload lists the fields of a kind that autoscalers may change: replicas, and the resources in a Pod template.
type workload struct {
	replicas bool
	template []string
}

// workloads are the built-in kinds with replicas or Pod templates, by group. Pods are merged by mergePod.
var workloads = map[string]map[string]workload{
	"":           {"ReplicationController": {true, podTemplate}},
	"apps":       apps,
	"extensions": apps,
	"batch":      {"Job": {template: podTemplate}, "CronJob": {template: cronJobPodTemplate}},
}

var apps = map[string]workload{
	"Deployment": {true, podTemplate}, "StatefulSet": {true, podTemplate}, "ReplicaSet": {true, podTemplate},
	"DaemonSet": {template: podTemplate},
}

// HasReplicas reports whether a kind is built in and has replicas that an autoscaler may change (MR-20).
func HasReplicas(group, kind string) bool { return workloads[group][kind].replicas }

// mergeWorkload keeps the fields that autoscalers change (MRM-1 … MRM-3). For other kinds, it keeps spec.replicas if
// the replicas must be preserved (MRM-17).
func mergeWorkload(c mergeContext, key objects.ID) {
	w, known := workloads[key.Group][key.Kind]
	switch {
	case w.replicas:
		mergeReplicas(c)
	case !known && c.preserveReplicas:
		keepLive(c, "spec", "replicas")
	}
	if w.template != nil {
		mergePodTemplate(c, w.template)
	}
}

// mergeDeployment keeps the annotations in which a controller counts.
func mergeDeployment(c mergeContext) { keepCounted(c, prefixDeployment) }

// mergeStatefulSet implements MRM-4: volumeClaimTemplates are immutable.
func mergeStatefulSet(c mergeContext) { keepLive(c, "spec", "volumeClaimTemplates") }

// mergeDaemonSet implements MRM-5.
func mergeDaemonSet(c mergeContext) { keepCounted(c, annotationTemplateNumber) }

// mergeJob implements MRM-6: the API server sets the selector and the labels that bind the Pods to the Job.
func mergeJob(c mergeContext) {
	keepLive(c, "spec", "selector")
	liveLabels, _, _ := unstructured.NestedMap(c.live.Object, "spec", "template", "metadata", "labels")
	if len(liveLabels) > 0 {
		desiredLabels, _, _ := unstructured.NestedMap(c.desired.Object, "spec", "template", "metadata", "labels")
		maps.Copy(liveLabels, desiredLabels)
		setNested(c.merged.Object, liveLabels, "spec", "template", "metadata", "labels")
	}
}

func mergeReplicas(c mergeContext) {
	if nested[any](c.desired.Object, "spec", "replicas") == nil || c.preserveReplicas {
		keepLive(c, "spec", "replicas")
	}
}

// mergePodTemplate implements MRM-2 and MRM-3. With preserve-resources, it keeps all resources of every live
// container that has any, including init containers (decision R10), and the resources at Pod level.
func mergePodTemplate(c mergeContext, path []string) {
	live, merged := nested[map[string]any](c.live.Object, path...), nested[map[string]any](c.merged.Object, path...)
	if live == nil || merged == nil {
		return
	}
	if restartedAt, found, _ := unstructured.NestedString(live, "metadata", "annotations", annotationRestartedAt); found {
		setNested(merged, restartedAt, "metadata", "annotations", annotationRestartedAt)
	}
	if c.preserveResources {
		for _, list := range containerLists {
			preserveResources(live, merged, list)
		}
		if kept := podResources(live); len(kept) > 0 {
			setNested(merged, kept, "spec", "resources")
		}
	}
}

// podResources returns the resources at Pod level.
func podResources(template map[string]any) map[string]any {
	return nested[map[string]any](template, "spec", "resources")
}

func preserveResources(live, merged map[string]any, list string) {
	present := byName(live, list)
	for _, container := range containers(merged, list) {
		if kept := nested[map[string]any](present[nested[string](container, "name")], "resources"); len(kept) > 0 {
			container["resources"] = kept
		}
	}
}

func containers(template map[string]any, list string) []map[string]any {
	var result []map[string]any
	for _, item := range nested[[]any](template, "spec", list) {
		if container, ok := item.(map[string]any); ok {
			result = append(result, container)
		}
	}
	return result
}
