package healthcheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	typed "github.com/espalier-project/espalier/internal/managedresource/schema"
)

// check returns the reason why an object is not healthy, nil if it is healthy.
type check func(*unstructured.Unstructured) error

// progress returns the reason why an object is still being rolled out, "" if it is rolled out.
type progress func(*unstructured.Unstructured) string

// checks has the kinds with a health rule, in exactly these versions (MRH-8).
var checks = map[schema.GroupVersionKind]check{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}:      checkCustomResourceDefinition,
	{Group: "apiextensions.k8s.io", Version: "v1beta1", Kind: "CustomResourceDefinition"}: checkCustomResourceDefinition,
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:                                     checkDaemonSet,
	{Group: "apps", Version: "v1", Kind: "Deployment"}:                                    checkDeployment,
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:                                    checkReplicaSet,
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}:                                   checkStatefulSet,
	{Group: "batch", Version: "v1", Kind: "Job"}:                                          checkJob,
	{Version: "v1", Kind: "Pod"}:                                                          checkPod,
	{Version: "v1", Kind: "ReplicationController"}:                                        checkReplicationController,
	{Version: "v1", Kind: "Service"}:                                                      checkService,
	{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}:           checkVerticalPodAutoscaler,
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"}:                   checkMonitoring,
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "Alertmanager"}:                 checkMonitoring,
	{Group: "cert.gardener.cloud", Version: "v1alpha1", Kind: "Certificate"}:              checkCertificate,
	{Group: "cert.gardener.cloud", Version: "v1alpha1", Kind: "Issuer"}:                   checkIssuer,
}

// progresses has the kinds with a rule about roll-outs, in any version (MRP-2).
var progresses = map[schema.GroupKind]progress{
	{Group: "apps", Kind: "Deployment"}:                    progressDeployment,
	{Group: "apps", Kind: "StatefulSet"}:                   progressStatefulSet,
	{Group: "apps", Kind: "DaemonSet"}:                     progressDaemonSet,
	{Group: "monitoring.coreos.com", Kind: "Prometheus"}:   progressMonitoring,
	{Group: "monitoring.coreos.com", Kind: "Alertmanager"}: progressMonitoring,
	{Group: "cert.gardener.cloud", Kind: "Certificate"}:    outdated,
	{Group: "cert.gardener.cloud", Kind: "Issuer"}:         outdated,
}

// Options select the checks in addition to the fixed list of kinds.
type Options struct {
	// CustomResources enables the assessment of custom resources without a rule, by the conventions of their status.
	CustomResources bool
}

// Status is the health of an object. The zero value is healthy and rolled out.
type Status struct {
	// Unhealthy is the reason why the object is not healthy.
	Unhealthy string
	// Progressing is the reason why the object is still being rolled out.
	Progressing string
	// Pods is set for a Deployment whose status reports no roll-out: the roll-out ends once exactly Wanted Pods that
	// match Selector belong to the Deployment.
	Pods     Pods
	Wanted   int64
	Selector string
}

// Pods compares the number of Pods of a Deployment with the wanted number.
type Pods uint8

// Pods are compared only for Deployments.
const (
	PodsIrrelevant Pods = iota // The object is no Deployment, or its status still reports a roll-out.
	PodsUncounted              // The Pods were not counted since the Deployment last changed.
	PodsExact
	PodsMissing
	PodsLeft // There are too many Pods.
)

// Counted returns the status with the result of a count of the Pods.
func (v Status) Counted(pods int64) Status {
	switch {
	case pods == v.Wanted:
		v.Pods = PodsExact
	case pods < v.Wanted:
		v.Pods = PodsMissing
	default:
		v.Pods = PodsLeft
	}
	return v
}

// CountsPods reports whether the number of Pods decides about the end of the roll-out.
func (v Status) CountsPods() bool { return v.Pods != PodsIrrelevant }

// NeedsWholeObject reports whether Assess needs more than the metadata of objects of a kind.
func (o Options) NeedsWholeObject(gvk schema.GroupVersionKind) bool {
	if checks[gvk] != nil || progresses[gvk.GroupKind()] != nil {
		return true
	}
	return o.CustomResources && typed.IsCustom(gvk.Group)
}

// Progresses reports whether Assess can report a roll-out for objects of a kind (MRP-2).
func (o Options) Progresses(gvk schema.GroupVersionKind) bool {
	return progresses[gvk.GroupKind()] != nil || o.byConvention(gvk)
}

// byConvention reports whether a kind has no rule and is assessed by the conventions of its status.
func (o Options) byConvention(gvk schema.GroupVersionKind) bool {
	return checks[gvk] == nil && progresses[gvk.GroupKind()] == nil && o.CustomResources && typed.IsCustom(gvk.Group)
}

// Assess assesses a live object. An object with the annotation to skip health checks is healthy and rolled out
// (MRH-9, MRP-4).
func (o Options) Assess(object *unstructured.Unstructured) Status {
	if object.GetAnnotations()[resourcesv1alpha1.AnnotationSkipHealthCheck] == "true" {
		return Status{}
	}
	var status Status
	gvk := object.GroupVersionKind()
	if o.byConvention(gvk) {
		return assessByConvention(object)
	}
	checkKind, progressKind := checks[gvk], progresses[gvk.GroupKind()]
	if checkKind != nil {
		if err := checkKind(object); err != nil {
			status.Unhealthy = err.Error()
		}
	}
	if progressKind != nil {
		status.Progressing = progressKind(object)
		if gvk.Kind == "Deployment" && status.Progressing == "" {
			status.Pods, status.Wanted = PodsUncounted, integerOr(object, 1, "spec", "replicas")
			status.Selector, _ = SelectorOf(object) // The API server refuses an empty or invalid one.
		}
	}
	return status
}

// outdated implements OG: it returns a message if the status is about an older generation.
func outdated(object *unstructured.Unstructured) string {
	return outdatedAt(integer(object, "status", "observedGeneration"), object.GetGeneration())
}

func outdatedAt(observed, generation int64) string {
	if observed < generation {
		return fmt.Sprintf("observed generation outdated (%d/%d)", observed, generation)
	}
	return ""
}

func checkOutdated(object *unstructured.Unstructured) error {
	if text := outdated(object); text != "" {
		return fmt.Errorf("%s", text)
	}
	return nil
}
