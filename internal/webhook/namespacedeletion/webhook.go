// Package namespacedeletion is the webhook that keeps the namespace of a project until the project is deleted and the
// namespace has no Shoots (B7 of the webhooks' contract). It reads metadata of Namespaces, Projects and Shoots of the
// garden live: an object that a cache lacks would allow the deletion (WB-37).
package namespacedeletion

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "namespace_validator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/validate-namespace-deletion"
)

var (
	namespaces = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	projects   = schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Project"}
	shoots     = projects.GroupVersion().WithKind("Shoot")
)

// Reads returns the webhook's reads of the garden.
func Reads() []feature.Read {
	return []feature.Read{
		{Cluster: feature.Garden, Kind: namespaces, Resource: "namespaces", ClusterScoped: true, Form: feature.Live},
		{Cluster: feature.Garden, Kind: projects, Resource: "projects", ClusterScoped: true, Form: feature.Live},
		{Cluster: feature.Garden, Kind: shoots, Resource: "shoots", Form: feature.List},
	}
}

// Decide returns the function that validates deletions of namespaces. The garden is read live.
func Decide(garden client.Reader) admission.Func { return admission.Decide(webhook{garden}.decide) }

type webhook struct{ garden client.Reader }

// decide enforces NSD-1 to NSD-5.
func (w webhook) decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Delete {
		return nil
	}
	namespace, err := w.get(ctx, namespaces, r.Name)
	if err != nil || namespace == nil || namespace.DeletionTimestamp != nil || namespace.Labels[wellknown.Project] == "" {
		return err
	}
	project, err := w.get(ctx, projects, namespace.Labels[wellknown.Project])
	switch {
	case err != nil || project == nil:
		return err
	case project.DeletionTimestamp == nil:
		return forbidden(r.Name, "direct deletion of namespace %q is not permitted (you must delete the corresponding project %q)", r.Name, project.Name)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(shoots.GroupVersion().WithKind("ShootList"))
	if err := w.garden.List(ctx, list, client.InNamespace(r.Name), client.Limit(1)); err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(list.Items) > 0 {
		return forbidden(r.Name, "deletion of namespace %q is not permitted (it still contains Shoots)", r.Name)
	}
	return nil
}

// get returns nil for a missing object.
func (w webhook) get(ctx context.Context, kind schema.GroupVersionKind, name string) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	err := w.garden.Get(ctx, client.ObjectKey{Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, apierrors.NewInternalError(err)
	}
	return object, nil
}

// forbidden returns an error with the namespace before the text and in the details, as API servers do.
func forbidden(namespace, format string, arguments ...any) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: namespaces.Kind}, namespace, fmt.Errorf(format, arguments...))
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration.
func Registration() admissionregistrationv1.ValidatingWebhook {
	return feature.GardenEntry("validate-namespace-deletion", feature.OfProjects(), nil, feature.On("", "v1", []string{"namespaces"}, admissionregistrationv1.Delete))
}
