// Package configref has the common part of the webhooks that validate configurations in ConfigMaps to which Shoots
// refer (B1 of the webhooks' contract): when a Shoot or such a ConfigMap is written, the ConfigMap must exist and be
// valid.
//
// A webhook defines the field of a Shoot that refers to its ConfigMap, and validates the content. The ConfigMap is
// read live, because a missing one would refuse the Shoot; an index has the Shoots that refer to it. Responses quote
// only the invalid parts of the content.
package configref

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

// Reads returns the flow's reads of the garden.
func Reads() []feature.Read {
	return []feature.Read{{Cluster: feature.Garden, Kind: configMaps, Resource: "configmaps", Form: feature.Live}}
}

var (
	configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	shoots     = gardencorev1beta1.GroupVersion.WithKind("Shoot")
)

// Getter reads ConfigMaps live.
type Getter interface {
	Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error
}

// Flow validates one kind of configuration.
type Flow struct {
	// Purpose is the name of the configuration in messages.
	Purpose string
	// Key is the key of the ConfigMap's data.
	Key string
	// Reference returns the name of the ConfigMap that a Shoot refers to; empty if there is none.
	Reference func(*gardencorev1beta1.KubeAPIServer) string
	// Relevant reports whether an update changes other fields of the Shoot that the validity of the content depends
	// on.
	Relevant func(now, old *gardencorev1beta1.Shoot) bool
	// Check validates the content for all Shoots that refer to it. Its error is the response.
	Check func(ctx context.Context, content string, users []*gardencorev1beta1.Shoot) error

	Shoots     *referrers.Index
	ConfigMaps Getter
}

// Decide returns the function that validates Shoots and ConfigMaps (CV-1).
func (f *Flow) Decide() admission.Func {
	return admission.Decide(func(ctx context.Context, r *admissionv1.AdmissionRequest) error {
		switch {
		case r.Kind.Group == shoots.Group && r.Kind.Kind == shoots.Kind:
			return f.shoot(ctx, r)
		case r.Kind.Group == "" && r.Kind.Kind == configMaps.Kind:
			return f.configMap(ctx, r)
		}
		admission.Explain(ctx, "resource is neither of type core.gardener.cloud/v1beta1.Shoot, operator.gardener.cloud/v1alpha1.Garden, nor corev1.ConfigMap")
		return nil
	})
}

// shoot enforces CV-2 to CV-9. For an object that cannot be decoded, the client gets the error (WB-30).
func (f *Flow) shoot(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		admission.Explain(ctx, "operation is neither create nor update, nothing to validate")
		return nil
	}
	shoot, err := admission.Decode[gardencorev1beta1.Shoot](shoots, r.Object.Raw, r.Namespace)
	if err != nil {
		return err
	}
	if shoot.DeletionTimestamp != nil {
		admission.Explain(ctx, "shoot is already marked for deletion")
		return nil
	}
	name := f.reference(shoot)
	if name == "" {
		admission.Explain(ctx, "Shoot resource does not specify any %s ConfigMap", f.Purpose)
		return nil
	}
	if r.Operation == admissionv1.Update {
		old, err := admission.Decode[gardencorev1beta1.Shoot](shoots, r.OldObject.Raw, r.Namespace)
		if err != nil {
			return err
		}
		switch same, err := sameSpec(r.Object.Raw, r.OldObject.Raw); {
		case err != nil:
			return err
		case same:
			admission.Explain(ctx, "shoot spec was not changed")
			return nil
		case name == f.reference(old) && shoot.Spec.Kubernetes.Version == old.Spec.Kubernetes.Version && !f.Relevant(shoot, old):
			admission.Explain(ctx, "Neither %s ConfigMap nor Kubernetes version or other relevant fields were changed", f.Purpose)
			return nil
		}
	}
	configMap := &corev1.ConfigMap{}
	err = f.ConfigMaps.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, configMap)
	switch {
	case apierrors.IsNotFound(err):
		return admission.Refuse(http.StatusUnprocessableEntity, "referenced %s ConfigMap %s/%s does not exist: %s", f.Purpose, r.Namespace, name, err)
	case err != nil:
		return admission.Refuse(http.StatusInternalServerError, "could not retrieve %s ConfigMap %s/%s: %s", f.Purpose, r.Namespace, name, err)
	}
	content, err := f.content(configMap, r.Namespace, name)
	if err != nil {
		return err
	}
	return f.check(ctx, content, []*gardencorev1beta1.Shoot{shoot})
}

// configMap enforces CV-10 to CV-14. It compares the content first, because most updates do not change a
// configuration.
func (f *Flow) configMap(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	if r.Operation != admissionv1.Update {
		admission.Explain(ctx, "operation is not update, nothing to validate")
		return nil
	}
	configMap, err := admission.Decode[corev1.ConfigMap](configMaps, r.Object.Raw, r.Namespace)
	if err != nil {
		return err
	}
	old, err := admission.Decode[corev1.ConfigMap](configMaps, r.OldObject.Raw, r.Namespace)
	if err != nil {
		return admission.Refuse(http.StatusBadRequest, "error decoding old ConfigMap: %s", err)
	}
	is, has := configMap.Data[f.Key]
	if was, had := old.Data[f.Key]; has == had && is == was {
		admission.Explain(ctx, "%s did not change", f.Purpose)
		return nil
	}
	users := f.Shoots.Shoots(relation.ConfigMap, r.Namespace, r.Name)
	users = slices.DeleteFunc(users, func(shoot *gardencorev1beta1.Shoot) bool { return f.reference(shoot) != r.Name })
	if len(users) == 0 {
		admission.Explain(ctx, "ConfigMap is not referenced by a Shoot")
		return nil
	}
	content, err := f.content(configMap, r.Namespace, r.Name)
	if err != nil {
		return err
	}
	return f.check(ctx, content, users)
}

func (f *Flow) check(ctx context.Context, content string, users []*gardencorev1beta1.Shoot) error {
	if err := f.Check(ctx, content, users); err != nil {
		return err
	}
	admission.Explain(ctx, "referenced %s is valid", f.Purpose)
	return nil
}

// reference returns the name of the ConfigMap to which a Shoot refers.
func (f *Flow) reference(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Spec.Kubernetes.KubeAPIServer == nil {
		return ""
	}
	return f.Reference(shoot.Spec.Kubernetes.KubeAPIServer)
}

// content enforces CV-8. Clients depend on the odd word order of the message (WB-31).
func (f *Flow) content(configMap *corev1.ConfigMap, namespace, name string) (string, error) {
	content, found := configMap.Data[f.Key]
	why := ""
	switch {
	case !found:
		why = fmt.Sprintf("missing %s key in %s ConfigMap data", f.Purpose, f.Key)
	case content == "":
		why = fmt.Sprintf("%s in %s key is empty", f.Purpose, f.Key)
	default:
		return content, nil
	}
	return "", admission.Refuse(http.StatusUnprocessableEntity, "error getting %s from ConfigMap %s/%s: %s", f.Purpose, namespace, name, why)
}

// Registration is the entry of such a webhook in a ValidatingWebhookConfiguration, without its client configuration.
func Registration(name string) admissionregistrationv1.ValidatingWebhook {
	return feature.GardenEntry(name, feature.OfProjects(), nil,
		feature.OnCreateAndUpdate(shoots.Group, shoots.Version, "shoots"), feature.On("", "v1", []string{"configmaps"}, admissionregistrationv1.Update))
}
