// Package deletionprotection is the webhook that refuses the deletion of CustomResourceDefinitions, extension
// resources and Etcds without a confirmation (A12 of the webhooks' contract): a landscape depends on these objects.
//
// It checks the metadata of the object in the request. For the deletion of a collection it also lists metadata of the
// collection's namespace in the source cluster, live, and refuses the request if one object is not confirmed
// (collection.go).
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
	// Name is the name of the webhook in logs and metrics.
	Name = "crd-deletion-protection"
	// Path is the URL path of the webhook.
	Path = "/webhooks/validate-crd-deletion"
	// Confirmation is the annotation that confirms a deletion if its value is true.
	Confirmation = "confirmation.gardener.cloud/deletion"
	// Protected is the label of protected CustomResourceDefinitions.
	Protected = "gardener.cloud/deletion-protected"
)

// Lister lists objects of the source cluster live.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

// protected are the resources whose objects are protected (A12.2). Bastions are not protected: they are short-lived,
// and clients never confirm their deletion (DP-1).
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

// Decide returns the function that refuses deletions without a confirmation.
func Decide(source Lister, c clock.PassiveClock) admission.Func {
	w := &webhook{newCollections(source, c)}
	return admission.Decide(w.decide)
}

type webhook struct{ collections *collections }

// decide follows the order of A12.3. Only the resource in the request counts, and not the one that its client used
// (DP-2). A dry run is handled like any other request (DP-19).
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

// judge checks the object in a request (DP-14), and reports whether it is protected. An API server that deletes a
// collection sends a review of each object, one after the other and without a name (DP-21). So this refuses an object
// without a confirmation, however old the list of its collection is.
func judge(r *admissionv1.AdmissionRequest, raw []byte) (protects bool, err error) {
	var object map[string]any // Of duplicate keys the last one counts, as in the reference (DP-18).
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

// texts returns labels or annotations.
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
	// shown is the number of names in a message, which people read.
	shown = 5
	// notSelected explains why objects count that the client has not selected.
	notSelected = " (a collection is deleted only if all objects of its namespace are confirmed: which of them are selected is not visible here)"
)

// refuse returns a refusal with the names of the objects after the text that clients depend on (WB-16).
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
