// Package resourcesize is the webhook that limits the size of objects and the number of cluster-scoped objects (B9 of
// the webhooks' contract), as configured. To count objects it lists metadata of the kind in the garden, live, up to
// one more than the limit.
package resourcesize

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "resource_size_validator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/validate-resource-size"
)

// Lister lists metadata of the garden live.
type Lister interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

// Rejections counts refused requests.
type Rejections interface {
	Count(r *admissionv1.AdmissionRequest, reason string)
}

// Options of the webhook.
type Options struct {
	// Config has the limits; nil means that there are none.
	Config     *config.ResourceAdmissionConfiguration
	Garden     Lister
	Rejections Rejections
	Log        logr.Logger
}

// Decide returns the function that validates objects with the first limit for their resource.
func Decide(o Options) admission.Func {
	if o.Config == nil {
		o.Config = &config.ResourceAdmissionConfiguration{}
	}
	return admission.Decide(o.decide)
}

// decide enforces RSZ-1 to RSZ-6.
func (o Options) decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return admission.Refuse(http.StatusBadRequest, "unknown operation request %q", r.Operation)
	}
	resource := schema.GroupVersionResource(ptr.Deref(r.RequestResource, r.Resource))
	limit := o.limitFor(resource)
	if limit == nil || o.unrestricted(r) {
		return nil
	}
	if err := o.count(ctx, r, resource, limit); err != nil {
		return err
	}
	return o.size(r, resource, limit)
}

func (o Options) limitFor(r schema.GroupVersionResource) *config.ResourceLimit {
	for i := range o.Config.Limits {
		l := &o.Config.Limits[i]
		if matches(l.APIGroups, r.Group) && matches(l.APIVersions, r.Version) && matches(l.Resources, r.Resource) {
			return l
		}
	}
	return nil
}

func matches(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, config.WildcardAll)
}

const serviceAccountPrefix = "system:serviceaccount:"

// unrestricted reports whether the user has no limits (RSZ-2). A ServiceAccount is matched by its name only, never by
// its groups.
func (o Options) unrestricted(r *admissionv1.AdmissionRequest) bool {
	account, isAccount := strings.CutPrefix(r.UserInfo.Username, serviceAccountPrefix)
	namespace, name, _ := strings.Cut(account, ":")
	return slices.ContainsFunc(o.Config.UnrestrictedSubjects, func(s rbacv1.Subject) bool {
		switch {
		case isAccount:
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == namespace && (s.Name == name || s.Name == config.WildcardAll)
		case s.Kind == rbacv1.UserKind:
			return s.Name == r.UserInfo.Username || s.Name == config.WildcardAll
		case s.Kind == rbacv1.GroupKind:
			return slices.Contains(r.UserInfo.Groups, s.Name) || s.Name == config.WildcardAll
		}
		return false
	})
}

// count limits the number of cluster-scoped objects (RSZ-4).
func (o Options) count(ctx context.Context, r *admissionv1.AdmissionRequest, resource schema.GroupVersionResource, limit *config.ResourceLimit) error {
	if limit.Count == nil || r.Namespace != "" || r.Operation != admissionv1.Create {
		return nil
	}
	kind := ptr.Deref(r.RequestKind, r.Kind)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind + "List"})
	found := int64(0)
	for options := []client.ListOption{client.Limit(*limit.Count + 1)}; ; options = []client.ListOption{client.Limit(*limit.Count + 1), client.Continue(list.Continue)} {
		if err := o.Garden.List(ctx, list, options...); err != nil {
			return fail("error handling count limit: failed to determine if count exceeds limit: %s", err)
		}
		found += int64(len(list.Items))
		switch {
		case found >= *limit.Count:
			return o.violation(r, resource, "Count Exceeded", []any{"limit", *limit.Count}, fmt.Errorf("maximum resource count exceeded! max allowed: %d", *limit.Count))
		case list.Continue == "":
			return nil
		}
	}
}

// size limits the size of an object without the parts that the system writes (RSZ-5). An update that does not enlarge
// it is admitted.
func (o Options) size(r *admissionv1.AdmissionRequest, resource schema.GroupVersionResource, limit *config.ResourceLimit) error {
	if limit.Size == nil {
		return nil
	}
	size, err := sizeOf(r.Object.Raw)
	if err != nil {
		return err
	}
	if size <= limit.Size.Value() {
		return nil
	}
	if r.Operation == admissionv1.Update { // The finalizers of an object from before the limit can be removed (T4-4).
		if was, err := sizeOf(r.OldObject.Raw); err == nil && size <= was {
			return nil
		}
	}
	return o.violation(r, resource, "Size Exceeded", []any{"requestObjectSize", size, "limit", limit.Size.String()}, fmt.Errorf("maximum resource size exceeded! Size in request: %d bytes, max allowed: %s", size, limit.Size))
}

// sizeOf returns the size of an object without the parts that the system writes.
func sizeOf(raw []byte) (int64, error) {
	if len(raw) == 0 {
		raw = []byte("{}") // No content has the size of an empty object (RSZ-T8).
	}
	var object map[string]any
	if err := admission.Unmarshal(raw, &object); err != nil {
		return 0, fail("error handling size limit: %s", err)
	}
	delete(object, "status")
	switch metadata := object["metadata"].(type) {
	case map[string]any:
		delete(metadata, "managedFields")
	case nil:
	default:
		return 0, admission.Refuse(http.StatusBadRequest, "error handling size limit: metadata is no object") // The reference panics here (WB-39).
	}
	counted, err := json.Marshal(object)
	if err != nil {
		return 0, fail("error handling size limit: %s", err)
	}
	return int64(len(counted)), nil
}

// violation returns a refusal, or only reports it (RSZ-6), and logs the measurements (OBS-6).
func (o Options) violation(r *admissionv1.AdmissionRequest, resource schema.GroupVersionResource, reason string, measured []any, why error) error {
	if ptr.Deref(o.Config.OperationMode, config.OperationModeBlock) == config.OperationModeLog {
		o.Log.WithValues(measured...).Info("Object would be refused", "resource", resource.GroupResource().String(), "namespace", r.Namespace, "name", r.Name, "user", r.UserInfo.Username, "reason", why.Error())
		return nil
	}
	o.Rejections.Count(r, reason)
	return apierrors.NewForbidden(resource.GroupResource(), r.Name, why)
}

func fail(format string, err error) error {
	return &admission.Refusal{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf(format, err)}
}
