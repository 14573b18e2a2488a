// Package deletionprotection is the webhook that refuses the deletion of CustomResourceDefinitions, extension resources and Etcds that
// nobody has confirmed (A12 of the webhooks' contract): all that a landscape runs hangs on them.
//
// It judges the metadata that the request brings along. The source cluster is read, live and as metadata, only for the deletion of a
// collection whose objects the request does not bring.
package deletionprotection

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/serve/admit"
)

const (
	// Name is the webhook's in logs and metrics.
	Name = "crd-deletion-protection"
	// Path is where it is served.
	Path = "/webhooks/validate-crd-deletion"
	// Confirmation is the annotation that confirms a deletion if it is true.
	Confirmation = "confirmation.gardener.cloud/deletion"
	// Protected is the label of CustomResourceDefinitions that are protected.
	Protected = "gardener.cloud/deletion-protected"
)

// Lister lists objects of the source cluster, live.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

// protected are the resources whose objects are protected (A12.2). Bastions come and go, and nobody confirms that (DP-1).
var protected = map[schema.GroupVersion][]string{
	crds:                                    {"customresourcedefinitions"},
	{Group: crds.Group, Version: "v1beta1"}: {"customresourcedefinitions"},
	{Group: "druid.gardener.cloud", Version: "v1alpha1"}:      {"etcds"},
	{Group: "extensions.gardener.cloud", Version: "v1alpha1"}: slices.DeleteFunc(slices.Clone(extensions), func(r string) bool { return r == "bastions" }),
}

var (
	crds       = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
	extensions = []string{
		"backupbuckets", "backupentries", "bastions", "containerruntimes", "controlplanes", "dnsrecords", "extensions", "infrastructures", "networks",
		"operatingsystemconfigs", "selfhostedshootexposures", "workers",
	}
)

// Decide refuses deletions that are not confirmed.
func Decide(source Lister) admit.Func {
	w := &webhook{source: source}
	return admit.Decide(w.decide)
}

type webhook struct{ source Lister }

// decide keeps the order of A12.3. Nothing but the request's own resource counts, whatever its client asked for (DP-2), and a dry run is
// judged like any other request (DP-19).
func (w *webhook) decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Delete {
		admit.Explain(ctx, "operation is not DELETE")
		return nil
	}
	if !slices.Contains(protected[schema.GroupVersion{Group: r.Resource.Group, Version: r.Resource.Version}], r.Resource.Resource) {
		admit.Explain(ctx, notProtected)
		return nil
	}
	raw := r.OldObject.Raw
	if len(raw) == 0 {
		raw = r.Object.Raw
	}
	switch {
	case len(raw) > 0:
		return judge(ctx, r, raw)
	case r.Name == "":
		return w.judgeCollection(ctx, r)
	}
	return admit.Refuse(http.StatusInternalServerError, "no object found in admission request")
}

const notProtected = "resource is not deletion-protected"

// judge judges the object that a request brings along (DP-14). An API server that deletes a collection asks about each of its objects, so
// that none is refused for the sake of one that is not in the collection.
func judge(ctx context.Context, r *admissionv1.AdmissionRequest, raw []byte) error {
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return admit.Refuse(http.StatusInternalServerError, "%s", err)
	}
	if isCRD(r) && object.Labels[Protected] != "true" { // The label makes a definition protected (R13).
		admit.Explain(ctx, notProtected)
		return nil
	}
	if confirmed(&object) {
		return nil
	}
	return refuse(r, []string{nameOf(&object)})
}

// pageSize is how many objects are read at a time: metadata of 500 objects is about a megabyte.
const pageSize = 500

// judgeCollection judges all objects that a request may be about, where it brings none along (DP-12, DP-13).
func (w *webhook) judgeCollection(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind + "List"})
	options := []client.ListOption{client.InNamespace(r.Namespace), client.Limit(pageSize)}
	if isCRD(r) {
		options = append(options, client.MatchingLabels{Protected: "true"})
	}
	for {
		err := w.source.List(ctx, list, append(options, client.Continue(list.Continue))...)
		switch {
		case apierrors.IsNotFound(err):
			admit.Explain(ctx, "object was not found")
			return nil
		case err != nil:
			return admit.Refuse(http.StatusInternalServerError, "%s", err)
		}
		var unconfirmed []string
		for i := range list.Items {
			if !confirmed(&list.Items[i]) {
				unconfirmed = append(unconfirmed, nameOf(&list.Items[i]))
			}
		}
		if len(unconfirmed) > 0 {
			return refuse(r, unconfirmed)
		}
		if list.Continue == "" {
			return nil
		}
	}
}

func isCRD(r *admissionv1.AdmissionRequest) bool { return r.Resource.Group == crds.Group }

func confirmed(object *metav1.PartialObjectMetadata) bool {
	yes, err := strconv.ParseBool(object.Annotations[Confirmation])
	return err == nil && yes
}

// shown is how many names a message has: they are for a person who reads it.
const shown = 5

// refuse names the objects after the text that clients look for (WB-16).
func refuse(r *admissionv1.AdmissionRequest, names []string) error {
	more := ""
	if n := len(names) - shown; n > 0 {
		names, more = names[:shown], fmt.Sprintf(" and %d more", n)
	}
	resource := (&metav1.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}).String()
	return &admit.Refusal{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: fmt.Sprintf("must have a %q annotation to delete: %s %s%s", Confirmation, resource, strings.Join(names, ", "), more),
	}
}

func nameOf(object *metav1.PartialObjectMetadata) string {
	if object.Namespace == "" {
		return object.Name
	}
	return object.Namespace + "/" + object.Name
}
