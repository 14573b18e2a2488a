// Package deletionprotection is the webhook that refuses the deletion of CustomResourceDefinitions, extension resources and Etcds without
// a confirmation (A12 of the webhooks' contract): all that a landscape runs depends on these objects.
//
// It judges the metadata in the request. For the deletion of a collection it also lists metadata of the collection's namespace
// in the source cluster, live, and refuses the whole request if one object is not confirmed (collection.go).
package deletionprotection

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

const (
	// Name is the webhook's in logs and metrics.
	Name = "crd-deletion-protection"
	// Path is the URL path of the webhook.
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

// protected are the resources whose objects are protected (A12.2). Bastions are not: they are short-lived, and their deletion is never confirmed (DP-1).
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
func Decide(source Lister, c clock.PassiveClock) admission.Func {
	w := &webhook{newCollections(source, c)}
	return admission.Decide(w.decide)
}

type webhook struct{ collections *collections }

// decide keeps the order of A12.3. Nothing but the request's own resource counts, whatever its client asked for (DP-2), and a dry run is
// judged like any other request (DP-19).
func (w *webhook) decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Delete {
		admission.Explain(ctx, "operation is not DELETE")
		return nil
	}
	if !slices.Contains(protected[schema.GroupVersion{Group: r.Resource.Group, Version: r.Resource.Version}], r.Resource.Resource) {
		admission.Explain(ctx, notProtected)
		return nil
	}
	raw := r.OldObject.Raw
	if len(raw) == 0 {
		raw = r.Object.Raw
	}
	if len(raw) == 0 {
		if r.Name == "" {
			return w.collections.judge(ctx, r)
		}
		return admission.Refuse(http.StatusInternalServerError, "no object found in admission request")
	}
	protects, err := judge(r, raw)
	switch {
	case err != nil:
		return err
	case !protects:
		admission.Explain(ctx, notProtected)
		return nil
	case r.Name == "":
		return w.collections.judge(ctx, r)
	}
	return nil
}

const notProtected = "resource is not deletion-protected"

// judge judges the object that a request brings along (DP-14), and reports whether it is protected at all. An API server that deletes a
// collection asks about each of its objects, one after the other and without a name (DP-21). So an object that is not confirmed is refused
// here, however old the list of its collection is.
func judge(r *admissionv1.AdmissionRequest, raw []byte) (protects bool, err error) {
	var object map[string]any // As the reference has it: of a key that is there twice, the last one counts (DP-18).
	if err := admission.Unmarshal(raw, &object); err != nil {
		return true, admission.Refuse(http.StatusInternalServerError, "%s", err)
	}
	metadata, _ := object["metadata"].(map[string]any)
	if isCRD(r) && texts(metadata["labels"])[Protected] != "true" { // The label makes a definition protected (R13).
		return false, nil
	}
	if confirmed(texts(metadata["annotations"])) {
		return true, nil
	}
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return true, refuse(r, []string{nameOf(namespace, name)}, "")
}

// texts are labels or annotations.
func texts(of any) map[string]string {
	all, _ := of.(map[string]any)
	found := make(map[string]string, len(all))
	for key, value := range all {
		if text, is := value.(string); is {
			found[key] = text
		}
	}
	return found
}

func isCRD(r *admissionv1.AdmissionRequest) bool { return r.Resource.Group == crds.Group }

func confirmed(annotations map[string]string) bool {
	yes, err := strconv.ParseBool(annotations[Confirmation])
	return err == nil && yes
}

const (
	// shown is the number of names in a message: they are for a person who reads it.
	shown = 5
	// notSelected explains why an object counts that the client has not selected.
	notSelected = " (a collection is deleted only if all objects of its namespace are confirmed: which of them are selected is not visible here)"
)

// refuse names the objects after the text that clients look for (WB-16).
func refuse(r *admissionv1.AdmissionRequest, names []string, why string) error {
	more := ""
	if n := len(names) - shown; n > 0 {
		names, more = names[:shown], fmt.Sprintf(" and %d more", n)
	}
	return forbid("must have a %q annotation to delete: %s %s%s%s", Confirmation, resourceOf(r), strings.Join(names, ", "), more, why)
}

func forbid(format string, arguments ...any) error {
	return &admission.Refusal{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf(format, arguments...)}
}

func resourceOf(r *admissionv1.AdmissionRequest) string {
	return (&metav1.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}).String()
}

func nameOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
