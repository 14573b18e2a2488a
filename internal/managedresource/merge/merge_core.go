package merge

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations that tie volumes and claims together, or record the progress of a controller: only the control plane
// writes them.
const (
	prefixVolumeBinding      = "pv.kubernetes.io/"
	prefixVolume             = "volume.kubernetes.io/"
	prefixVolumeBeta         = "volume.beta.kubernetes.io/"
	prefixDeployment         = "deployment.kubernetes.io/"
	annotationTemplateNumber = "deprecated.daemonset.template.generation"
)

// mergePersistentVolume keeps the binding: without it the volume is released and its claim is lost.
func mergePersistentVolume(c mergeContext) {
	keepPrefixed(c, prefixVolumeBinding)
	keepPrefixed(c, prefixVolume)
	live := nested[map[string]any](c.live.Object, "spec", "claimRef")
	if live == nil {
		return
	}
	merged := nested[map[string]any](c.merged.Object, "spec", "claimRef")
	if merged == nil || merged["name"] == live["name"] && merged["namespace"] == live["namespace"] {
		// A manifest may name the claim; which one of that name it was only the control plane knows.
		setNested(c.merged.Object, live, "spec", "claimRef")
	}
}

// mergePersistentVolumeClaim keeps the binding and the class that the claim got where its manifest names none: a claim
// without them is refused. No class at all is "", another wish.
func mergePersistentVolumeClaim(c mergeContext) {
	for _, prefix := range []string{prefixVolumeBinding, prefixVolume, prefixVolumeBeta} {
		keepPrefixed(c, prefix)
	}
	for _, field := range []string{"volumeName", "storageClassName"} {
		keepLiveIfUnset(c, "spec", field)
	}
}

// mergeNamespace keeps the finalizers, which are changed by another request, and the label that every Namespace has.
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

// mergeNode keeps the fields that make the object the Node of one machine, and the taints that show its state.
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

// isStateTaint reports whether an admission plugin or a controller of Kubernetes sets and removes the taint.
func isStateTaint(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "node.kubernetes.io" || prefix == "node.cloudprovider.kubernetes.io"
}

func sameTaint(taint any, other map[string]any) bool {
	fields, _ := taint.(map[string]any)
	return fields["key"] == other["key"] && fields["effect"] == other["effect"]
}

// mergeIngress keeps the class that admission filled in when the Ingress was created: an update without a class removes
// it, so that no controller serves the Ingress any more. A manifest may name the class in the deprecated annotation,
// and then gets no other class.
func mergeIngress(c mergeContext) {
	if _, set := c.desired.GetAnnotations()["kubernetes.io/ingress.class"]; !set {
		keepLiveIfUnset(c, "spec", "ingressClassName")
	}
}

// mergeSecret keeps the token that the control plane writes into a Secret of that type.
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

// mergeClusterRole keeps the rules that a controller collects from other roles.
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

// StatusAnnotations are the annotations of a kind that are parts of its status: merging keeps the live ones.
func StatusAnnotations(kind schema.GroupKind) []string {
	if kind.Group == "autoscaling" && kind.Kind == "HorizontalPodAutoscaler" {
		return autoscalerStatus
	}
	return nil
}

// autoscalerStatus are those of version 1.
var autoscalerStatus = []string{"autoscaling.alpha.kubernetes.io/conditions",
	"autoscaling.alpha.kubernetes.io/current-metrics"}

// autoscalerSpec are the annotations that version 1 has for what version 2 has in its specification.
var autoscalerSpec = []string{"autoscaling.alpha.kubernetes.io/metrics", "autoscaling.alpha.kubernetes.io/behavior"}

// mergeHorizontalPodAutoscaler keeps the status that version 1 has in annotations. Annotations that are the
// specification are the manifest's alone.
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
