package garbagecollector

import (
	"errors"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
)

type holderKind struct {
	gvk      schema.GroupVersionKind
	resource string
	// optional kinds may be missing in a cluster (GC-6); if another kind is not served, the references are
	// incomplete.
	optional bool
	// specsOnly kinds are listed for the references in their Pod specs, and not if only annotations count (GC-11).
	specsOnly bool
	whole     func() client.ObjectList
}

// holders are the kinds of GC-6, and two more: ReplicaSets, because a rollback of a Deployment needs the objects to
// which its older ReplicaSets refer, and ServiceAccounts, because their Pods use their image pull secrets.
var holders = []holderKind{
	{gvk: appsv1.SchemeGroupVersion.WithKind("Deployment"), resource: "deployments", whole: func() client.ObjectList { return &appsv1.DeploymentList{} }},
	{gvk: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), resource: "statefulsets", whole: func() client.ObjectList { return &appsv1.StatefulSetList{} }},
	{gvk: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), resource: "daemonsets", whole: func() client.ObjectList { return &appsv1.DaemonSetList{} }},
	{gvk: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), resource: "replicasets", specsOnly: true, whole: func() client.ObjectList { return &appsv1.ReplicaSetList{} }},
	{gvk: batchv1.SchemeGroupVersion.WithKind("Job"), resource: "jobs", whole: func() client.ObjectList { return &batchv1.JobList{} }},
	{gvk: batchv1.SchemeGroupVersion.WithKind("CronJob"), resource: "cronjobs", whole: func() client.ObjectList { return &batchv1.CronJobList{} }},
	{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), resource: "pods", whole: func() client.ObjectList { return &corev1.PodList{} }},
	{gvk: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), resource: "serviceaccounts", specsOnly: true, whole: func() client.ObjectList { return &corev1.ServiceAccountList{} }},
	{gvk: resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"), resource: "managedresources", optional: true, whole: unstructuredList(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))},
	{gvk: references.PrometheusKind.WithVersion("v1"), resource: "prometheuses", optional: true, whole: unstructuredList(references.PrometheusKind.WithVersion("v1"))},
}

// unstructuredList makes lists of a kind that a CRD defines. If the CRD is not Gardener's, its objects may have any
// content, and one object that does not match the kind's type must not make the list unreadable.
func unstructuredList(gvk schema.GroupVersionKind) func() client.ObjectList {
	return func() client.ObjectList {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(gvk)
		return l
	}
}

// list returns the constructor of empty lists: of full objects if their specs count, otherwise of metadata.
func (k holderKind) list(specs bool) func() client.ObjectList {
	if specs {
		return k.whole
	}
	return func() client.ObjectList {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
		return l
	}
}

// addReferences adds the references of a list's objects.
func addReferences(graph *internalreferences.Graph, kind holderKind, list client.ObjectList, unread *unreadable) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		namespace, name := object.GetNamespace(), object.GetName()
		refers, err := refersTo(item, object)
		if err != nil {
			unread.add(kind.gvk.Kind, namespace, name, err)
			graph.HoldNamespace(namespace)
			refers = references.FromAnnotations(object.GetAnnotations())
		}
		graph.Hold(kind.gvk.Kind, namespace, name, refers)
		return nil
	})
}

// refersTo returns the references of an object: only those in annotations if the list has only metadata.
func refersTo(item runtime.Object, object metav1.Object) ([]references.Reference, error) {
	if _, metadata := item.(*metav1.PartialObjectMetadata); metadata {
		return references.FromAnnotations(object.GetAnnotations()), nil
	}
	return references.FromObject(item)
}

// unreadable counts the holders that could not be read in one pass, and has the names of some.
type unreadable struct {
	count int
	names []string
}

// add records an object and the field that cannot be read. It leaves out the parser's error, which would have content
// of the object.
func (u *unreadable) add(kind, namespace, name string, err error) {
	if u.count++; len(u.names) < shown {
		field := ""
		if undecodable, is := errors.AsType[*references.UndecodableError](err); is {
			field = " (" + undecodable.Field + ")"
		}
		u.names = append(u.names, kind+" "+namespace+"/"+name+field)
	}
}

func (u *unreadable) log(logger logr.Logger) {
	if u.count > 0 {
		logger.Info("Objects cannot be read; nothing is collected in their namespaces", "count", u.count, "objects", u.names)
	}
}

// isUnknown reports whether the error of a list means that the kind is not served.
func isUnknown(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }
