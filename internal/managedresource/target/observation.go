package target

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/schema"
)

// View decides whether entire objects of a kind are watched or only their metadata, and which parts of them count for
// drift.
type View struct {
	Health healthcheck.Options

	// selector is the label selector of lists and watches; nil selects all.
	selector labels.Selector
}

// wholeForDrift are kinds without a generation, for which metadata does not show whether a managed field or only the
// status has changed.
var wholeForDrift = map[runtimeschema.GroupKind]bool{
	{Kind: "Service"}: true, {Kind: "Namespace"}: true, {Kind: "PersistentVolumeClaim"}: true,
	{Kind: "PersistentVolume"}: true,
	{Kind: "Pod"}:              true, {Kind: "ResourceQuota"}: true, {Kind: "ReplicationController"}: true,
	{Kind: "Node"}: true,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: true,
}

// generationCovers are the API groups whose kinds count every change of a managed field in their generation. In other
// groups some kinds have no generation, and some have one that stays 1.
var generationCovers = map[string]bool{
	"apps": true, "batch": true, "policy": true, "networking.k8s.io": true, "apiextensions.k8s.io": true,
	"admissionregistration.k8s.io": true,
}

// Whole reports whether entire objects of a kind are watched, not only their metadata.
func (v View) Whole(gvk runtimeschema.GroupVersionKind) bool {
	return wholeForDrift[gvk.GroupKind()] || v.Health.NeedsWholeObject(gvk)
}

// Observation returns the observation of an object with all its fields.
func (v View) Observation(object *unstructured.Unstructured) objects.Observation {
	gvk := object.GroupVersionKind()
	observation := v.metadata(gvk, object)
	if v.Whole(gvk) {
		status := v.Health.Assess(object)
		observation.Health, observation.Version = &status, gvk.Version
		observation.Digest = objects.ContentDigest(content(gvk, object.Object))
	}
	return observation
}

// metadata returns the observation of an object's metadata.
func (v View) metadata(gvk runtimeschema.GroupVersionKind, object metav1.Object) objects.Observation {
	observation := objects.Observation{
		ID:              objects.NewID(gvk.GroupKind(), object.GetNamespace(), object.GetName()),
		UID:             object.GetUID(),
		ResourceVersion: object.GetResourceVersion(),
		Terminating:     object.GetDeletionTimestamp() != nil,
		Unlabelled:      v.selector != nil && !v.selector.Matches(labels.Set(object.GetLabels())),
		Hold:            hold.Digest(object.GetAnnotations()),
	}
	if object.GetGeneration() > 0 && (generationCovers[gvk.Group] || schema.IsCustom(gvk.Group)) {
		observation.Digest = objects.MetadataDigest(object)
	}
	return observation
}

// content returns an object without the annotations that merging treats as status, which do not count for drift.
func content(gvk runtimeschema.GroupVersionKind, object map[string]any) map[string]any {
	status := merge.StatusAnnotations(gvk.GroupKind())
	annotations, _, _ := unstructured.NestedFieldNoCopy(object, "metadata", "annotations")
	kept, _ := annotations.(map[string]any)
	if len(status) == 0 || len(kept) == 0 {
		return object
	}
	kept = maps.Clone(kept)
	for _, name := range status {
		delete(kept, name)
	}
	meta, _ := object["metadata"].(map[string]any)
	object, meta = maps.Clone(object), maps.Clone(meta)
	object["metadata"] = meta
	if meta["annotations"] = kept; len(kept) == 0 {
		delete(meta, "annotations")
	}
	return object
}
