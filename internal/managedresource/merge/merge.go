package merge

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	typed "github.com/espalier-project/espalier/internal/managedresource/schema"
)

// Options control the merge of a desired object into the live one.
type Options struct {
	ForceOverwriteLabels      bool
	ForceOverwriteAnnotations bool
	// Origin is the value of the origin annotation.
	Origin string
	// HorizontallyScaled is true if an autoscaler controls the replicas of the object (MR-21).
	HorizontallyScaled bool
	// Hold is the combined effect of the holds on the object and its ManagedResource.
	Hold hold.Effect
}

// serverOwned are the metadata fields that only the API server sets.
var serverOwned = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "selfLink", "managedFields"}

// ForCreation returns the object to create: without the fields that only the API server sets (MRB-32), with the
// origin, and with the description unless the object is created only once (MR-30). It does not change its argument.
func ForCreation(desired *plan.Desired, options Options) *unstructured.Unstructured {
	object := desired.DeepCopy()
	for _, field := range serverOwned {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	annotations := withOrigin(object.GetAnnotations(), options.Origin)
	if desired.CreateOnly {
		delete(annotations, resourcesv1alpha1.AnnotationDescription)
	}
	setStrings(object, "annotations", annotations)
	return object
}

// Merge returns the live object as it should be: the desired object, except for metadata, status and the rules of its
// kind (contract, managed-resources 7 and 8). It does not change its arguments.
func Merge(desired *plan.Desired, live *unstructured.Unstructured, options Options) *unstructured.Unstructured {
	if desired.CreateOnly {
		return live.DeepCopy()
	}

	if options.Hold.IsInForce() {
		return mergeHeld(desired, live, options)
	}
	merged := desired.DeepCopy()
	merged.Object["metadata"] = mergeMetadata(desired, live, options)
	if status, found := live.Object["status"]; found {
		merged.Object["status"] = status
	} else {
		delete(merged.Object, "status")
	}
	c := mergeContext{
		desired: desired.Unstructured, live: live, merged: merged,
		preserveReplicas: options.HorizontallyScaled ||
			literalTrue(desired.Unstructured, resourcesv1alpha1.AnnotationPreserveReplicas),
		preserveResources: literalTrue(desired.Unstructured, resourcesv1alpha1.AnnotationPreserveResources),
	}
	if rule := rules[desired.Ref.Group][desired.Ref.Kind]; rule != nil {
		rule(c)
	}
	mergeWorkload(c, desired.Ref.ID)
	return merged
}

// mergeHeld leaves the live object as it is, except for the managed-by label, the origin and the description: without
// these no watch would report its changes and the end of the hold (MRF-12).
func mergeHeld(desired *plan.Desired, live *unstructured.Unstructured, options Options) *unstructured.Unstructured {
	merged := live.DeepCopy()
	unstructured.RemoveNestedField(merged.Object, "metadata", "managedFields")
	if value, found := desired.GetLabels()[resourcesv1alpha1.LabelManagedBy]; found {
		labels := merged.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[resourcesv1alpha1.LabelManagedBy] = value
		setStrings(merged, "labels", labels)
	}
	setStrings(merged, "annotations", withOrigin(withoutEndedHold(merged.GetAnnotations(), options.Hold), options.Origin))
	return merged
}

// withoutEndedHold removes the annotations of a hold that is over or refused (MRF-13).
func withoutEndedHold(annotations map[string]string, effect hold.Effect) map[string]string {
	if effect.RemovesAnnotations {
		for _, name := range hold.Annotations {
			delete(annotations, name)
		}
	}
	return annotations
}

// mergeMetadata takes all metadata from the live object except labels, annotations and owners (MRL-5 … MRL-14).
func mergeMetadata(desired *plan.Desired, live *unstructured.Unstructured, options Options) map[string]any {
	liveMeta, _ := live.Object["metadata"].(map[string]any)
	meta := maps.Clone(liveMeta)
	if meta == nil {
		meta = map[string]any{}
	}
	delete(meta, "managedFields") // A write without managedFields leaves them unchanged.
	holder := &unstructured.Unstructured{Object: map[string]any{"metadata": meta}}

	var oldLabels, oldAnnotations map[string]string
	if desired.Old != nil {
		oldLabels, oldAnnotations = desired.Old.Labels, desired.Old.Annotations
	}
	setStrings(holder, "labels", mergeStrings(live.GetLabels(), desired.GetLabels(), oldLabels,
		options.ForceOverwriteLabels))
	annotations := mergeStrings(withoutReferences(live.GetAnnotations()), desired.GetAnnotations(), oldAnnotations,
		options.ForceOverwriteAnnotations)
	setStrings(holder, "annotations", withOrigin(withoutEndedHold(annotations, options.Hold), options.Origin))

	if owners := nested[any](desired.Object, "metadata", "ownerReferences"); owners != nil {
		meta["ownerReferences"] = owners
	} else {
		delete(meta, "ownerReferences")
	}
	return meta
}

func withOrigin(annotations map[string]string, origin string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[resourcesv1alpha1.AnnotationDescription] = resourcesv1alpha1.DescriptionValue
	annotations[resourcesv1alpha1.AnnotationOrigin] = origin
	return annotations
}

// setStrings sets a map of strings in metadata; an empty map removes the field (MRL-7).
func setStrings(object *unstructured.Unstructured, field string, values map[string]string) {
	if len(values) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
		return
	}
	entries := make(map[string]any, len(values))
	for key, value := range values {
		entries[key] = value
	}
	plan.ChildMap(object.Object, "metadata")[field] = entries
}

func literalTrue(object *unstructured.Unstructured, annotation string) bool {
	return object.GetAnnotations()[annotation] == "true"
}

// mergeContext is the input of a kind's merge rule. The rule may change merged, but must replace, not change, the
// parts that merged may share with live.
type mergeContext struct {
	desired, live, merged *unstructured.Unstructured
	preserveReplicas      bool
	preserveResources     bool
}

type mergeRule func(mergeContext)

// rules are the merge rules of kinds, by group. They apply to all versions, because these have the same fields.
var rules = map[string]map[string]mergeRule{
	"": {
		"Namespace": mergeNamespace, "Node": mergeNode, "PersistentVolume": mergePersistentVolume,
		"PersistentVolumeClaim": mergePersistentVolumeClaim,
		"Pod":                   mergePod, "Secret": mergeSecret, "Service": mergeService,
		"ServiceAccount": mergeServiceAccount,
	},
	"apps":                      workloadRules,
	"extensions":                workloadRules,
	"batch":                     {"Job": mergeJob},
	"autoscaling":               {"HorizontalPodAutoscaler": mergeHorizontalPodAutoscaler},
	"networking.k8s.io":         {"Ingress": mergeIngress},
	"rbac.authorization.k8s.io": {"ClusterRole": mergeClusterRole},
	"certificates.k8s.io":       {"CertificateSigningRequest": mergeCertificateSigningRequest},
	"resource.k8s.io":           {"DeviceTaintRule": mergeDeviceTaintRule, "ResourceSlice": mergeResourceSlice},
}

var workloadRules = map[string]mergeRule{"Deployment": mergeDeployment, "StatefulSet": mergeStatefulSet,
	"DaemonSet": mergeDaemonSet}

func mergeServiceAccount(c mergeContext) {
	for _, field := range []string{"secrets", "imagePullSecrets"} {
		keepLive(c, field)
	}
}

// keepLive keeps the live value of a field, or removes the field if the live object has none.
func keepLive(c mergeContext, fields ...string) {
	if value := nested[any](c.live.Object, fields...); value != nil {
		setNested(c.merged.Object, value, fields...)
		return
	}
	unstructured.RemoveNestedField(c.merged.Object, fields...)
}

// keepLiveIfUnset keeps the live value of a field if it is unset in the desired object. The type of the field decides
// which values count as unset.
func keepLiveIfUnset(c mergeContext, fields ...string) {
	kind, _ := typed.Of(c.merged.GroupVersionKind())
	if value, found, _ := unstructured.NestedFieldNoCopy(c.merged.Object, fields...); found &&
		!kind.At(fields...).IsZero(value) {
		return
	}
	if value := nested[any](c.live.Object, fields...); value != nil {
		setNested(c.merged.Object, value, fields...)
	}
}

// setNested sets a field without copying the value. It does nothing if a parent of the field is not a mapping.
func setNested(object map[string]any, value any, fields ...string) {
	for _, field := range fields[:len(fields)-1] {
		if object = plan.ChildMap(object, field); object == nil {
			return
		}
	}
	object[fields[len(fields)-1]] = value
}

// nested returns the value of a field; the zero value if the field is missing or has another type.
func nested[T any](object map[string]any, fields ...string) T {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	typed, _ := value.(T)
	return typed
}

// keepPrefixed keeps the live annotations with a prefix, unless the desired object sets them.
func keepPrefixed(c mergeContext, prefix string) {
	wanted := c.desired.GetAnnotations()
	keepAnnotations(c, func(key string) bool {
		_, set := wanted[key]
		return strings.HasPrefix(key, prefix) && !set
	})
}

// keepCounted keeps the live annotations with a prefix, even if the desired object sets them, because a controller
// counts in them.
func keepCounted(c mergeContext, prefix string) {
	keepAnnotations(c, func(key string) bool { return strings.HasPrefix(key, prefix) })
}

func keepAnnotations(c mergeContext, kept func(key string) bool) {
	annotations := c.merged.GetAnnotations()
	changed := false
	for key, value := range c.live.GetAnnotations() {
		if kept(key) {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = value
			changed = true
		}
	}
	if changed {
		setStrings(c.merged, "annotations", annotations)
	}
}
