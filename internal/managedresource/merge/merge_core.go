package merge

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// These annotations bind volumes and claims, or record the progress of a controller. Only the control plane writes
// them.
const (
	prefixVolumeBinding      = "pv.kubernetes.io/"
	prefixVolume             = "volume.kubernetes.io/"
	prefixVolumeBeta         = "volume.beta.kubernetes.io/"
	prefixDeployment         = "deployment.kubernetes.io/"
	annotationTemplateNumber = "deprecated.daemonset.template.generation"
)

// mergePersistentVolume keeps the binding: without it, the volume is released and its claim is lost.
func mergePersistentVolume(c mergeContext) {
	keepPrefixed(c, prefixVolumeBinding)
	keepPrefixed(c, prefixVolume)
	live := nested[map[string]any](c.live.Object, "spec", "claimRef")
	if live == nil {
		return
	}
	merged := nested[map[string]any](c.merged.Object, "spec", "claimRef")
	if merged == nil || merged["name"] == live["name"] && merged["namespace"] == live["namespace"] {
		// A manifest may name the claim, but only the control plane has its UID.
		setNested(c.merged.Object, live, "spec", "claimRef")
	}
}

// mergePersistentVolumeClaim keeps the binding, and the class that the claim got if its manifest names none: the API
// server refuses to remove them. The class "" is a request for no class, and is not replaced.
func mergePersistentVolumeClaim(c mergeContext) {
	for _, prefix := range []string{prefixVolumeBinding, prefixVolume, prefixVolumeBeta} {
		keepPrefixed(c, prefix)
	}
	for _, field := range []string{"volumeName", "storageClassName"} {
		keepLiveIfUnset(c, "spec", field)
	}
}

// mergeNamespace keeps the finalizers, which need another request to change, and the name label of every Namespace.
func mergeNamespace(c mergeContext) {
	keepLive(c, "spec")
	labels := c.merged.GetLabels()
	if name, found := c.live.GetLabels()[corev1.LabelMetadataName]; found && labels[corev1.LabelMetadataName] != name {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[corev1.LabelMetadataName] = name
		setStrings(c.merged, "labels", labels)
	}
}

// mergeNode keeps the fields that bind the object to one machine, and the taints that reflect its state.
func mergeNode(c mergeContext) {
	for _, field := range []string{"providerID", "podCIDR", "podCIDRs"} {
		keepLiveIfUnset(c, "spec", field)
	}
	taints := nested[[]any](c.merged.Object, "spec", "taints")
	for _, taint := range nested[[]any](c.live.Object, "spec", "taints") {
		fields, _ := taint.(map[string]any)
		key, _ := fields["key"].(string)
		if isStateTaint(key) && !slices.ContainsFunc(taints, func(t any) bool { return sameTaint(t, fields) }) {
			taints = append(taints, taint)
		}
	}
	if len(taints) > 0 {
		setNested(c.merged.Object, taints, "spec", "taints")
	}
}

// isStateTaint reports whether an admission plugin or a controller of Kubernetes manages the taint.
func isStateTaint(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "node.kubernetes.io" || prefix == "node.cloudprovider.kubernetes.io"
}

func sameTaint(taint any, other map[string]any) bool {
	fields, _ := taint.(map[string]any)
	return fields["key"] == other["key"] && fields["effect"] == other["effect"]
}

// mergeIngress keeps the class that admission set when the Ingress was created: an update without a class would
// remove it, so that no controller serves the Ingress any more. A manifest with the deprecated class annotation gets
// no other class.
func mergeIngress(c mergeContext) {
	if _, set := c.desired.GetAnnotations()["kubernetes.io/ingress.class"]; !set {
		keepLiveIfUnset(c, "spec", "ingressClassName")
	}
}

// mergeSecret keeps the token that the control plane writes into Secrets of this type.
func mergeSecret(c mergeContext) {
	if nested[string](c.desired.Object, "type") != string(corev1.SecretTypeServiceAccountToken) ||
		nested[string](c.live.Object, "type") != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	keepPrefixed(c, corev1.ServiceAccountUIDKey)
	for _, key := range []string{corev1.ServiceAccountTokenKey, corev1.ServiceAccountRootCAKey,
		corev1.ServiceAccountNamespaceKey} {
		keepLiveIfUnset(c, "data", key)
	}
}

// mergeClusterRole keeps the rules that a controller aggregates from other roles.
func mergeClusterRole(c mergeContext) {
	if nested[any](c.desired.Object, "aggregationRule") != nil {
		keepLive(c, "rules")
	}
}

// mergeCertificateSigningRequest keeps the requester, which the API server recorded.
func mergeCertificateSigningRequest(c mergeContext) {
	for _, field := range []string{"username", "uid", "groups", "extra"} {
		keepLive(c, "spec", field)
	}
}

// StatusAnnotations returns the annotations of a kind that are part of its status, for which merging keeps the live
// values.
func StatusAnnotations(kind schema.GroupKind) []string {
	if kind.Group == "autoscaling" && kind.Kind == "HorizontalPodAutoscaler" {
		return autoscalerStatus
	}
	return nil
}

// autoscalerStatus are the annotations that have the status in version 1.
var autoscalerStatus = []string{"autoscaling.alpha.kubernetes.io/conditions",
	"autoscaling.alpha.kubernetes.io/current-metrics"}

// autoscalerSpec are the annotations of version 1 for fields that version 2 has in its spec.
var autoscalerSpec = []string{"autoscaling.alpha.kubernetes.io/metrics", "autoscaling.alpha.kubernetes.io/behavior"}

// mergeHorizontalPodAutoscaler keeps the status that version 1 has in annotations. Annotations with parts of the spec
// are taken from the manifest only.
func mergeHorizontalPodAutoscaler(c mergeContext) {
	for _, name := range autoscalerStatus {
		keepPrefixed(c, name)
	}
	annotations, wanted := c.merged.GetAnnotations(), c.desired.GetAnnotations()
	for _, name := range autoscalerSpec {
		if _, set := wanted[name]; !set {
			delete(annotations, name)
		}
	}
	setStrings(c.merged, "annotations", annotations)
}
