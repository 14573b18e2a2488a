package restriction

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
)

// Path of the webhook that reserves names of ServiceAccounts, and its name in logs.
const (
	ReservedPath = "/webhooks/admission/reserved-service-accounts"
	ReservedName = "reserved_service_accounts"
)

// systemAccounts is the group of the garden's own controllers.
const systemAccounts = "system:serviceaccounts:" + wellknown.KubeSystem

// Reserved admits ServiceAccounts with the name of an extension of a self-hosted shoot, and tokens of such
// ServiceAccounts, only if the Shoot's gardenlet or the system requests them (RSA-1 to RSA-4). Otherwise a member of
// a project could become an extension by choosing a name.
func Reserved(_ context.Context, r *admissionv1.AdmissionRequest) error {
	if slices.Contains(r.UserInfo.Groups, user.SystemPrivilegedGroup) || slices.Contains(r.UserInfo.Groups, systemAccounts) {
		return nil
	}
	account, err := reserves(r)
	if err != nil {
		return err
	}
	extension, reserved := identity.ExtensionOfShoot(r.Namespace, account)
	if !reserved {
		return nil
	}
	asking, _ := identity.OfShoot(r.UserInfo.Username, r.UserInfo.Groups)
	if asking == (identity.ShootClient{Namespace: extension.Namespace, Name: extension.Name, Type: identity.Gardenlet}) {
		return nil
	}
	return refuse(http.StatusForbidden, "ServiceAccount %q is reserved for an extension of the self-hosted Shoot %s/%s, only whose gardenlet creates it and its tokens",
		account, extension.Namespace, extension.Name)
}

// reserves returns the ServiceAccount that the request creates, or for which it would get a token; empty means none.
func reserves(r *admissionv1.AdmissionRequest) (string, error) {
	object := tokenSecret{}
	switch {
	case r.Resource.Resource == "serviceaccounts" && r.Name != "":
		return r.Name, nil
	case r.Resource.Resource == "serviceaccounts":
		err := admission.Unmarshal(r.Object.Raw, &object)
		if object.Metadata.Name == "" { // API servers add five random characters: none of them is a hyphen.
			return object.Metadata.GenerateName + "-----", err
		}
		return object.Metadata.Name, err
	}
	if err := admission.Unmarshal(r.Object.Raw, &object); err != nil {
		return "", err
	}
	old := tokenSecret{}
	if r.Operation == admissionv1.Update {
		if err := admission.Unmarshal(r.OldObject.Raw, &old); err != nil {
			return "", refuse(http.StatusInternalServerError, "the current object cannot be read: %s", err)
		}
	}
	if account := object.account(); account != old.account() {
		return account, nil
	}
	return "", nil
}

// tokenSecret has the fields that are read of a Secret, and of a ServiceAccount.
type tokenSecret struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Type     corev1.SecretType `json:"type"`
}

// account returns the ServiceAccount whose token kube-controller-manager writes into the Secret.
func (s *tokenSecret) account() string {
	if s.Type != corev1.SecretTypeServiceAccountToken {
		return ""
	}
	return s.Metadata.Annotations[corev1.ServiceAccountNameKey]
}

// reservedCondition selects only requests for reserved names, so that no others depend on admission-controller.
var reservedCondition = fmt.Sprintf(`request.resource.resource == 'secrets'
? has(object.type) && object.type == '%[1]s' && has(object.metadata.annotations) && '%[2]s' in object.metadata.annotations && object.metadata.annotations['%[2]s'].startsWith('%[3]s')
: has(request.name) && request.name.startsWith('%[3]s') || has(object.metadata) && (has(object.metadata.name) && object.metadata.name.startsWith('%[3]s') || has(object.metadata.generateName) && object.metadata.generateName.startsWith('%[3]s'))`,
	corev1.SecretTypeServiceAccountToken, corev1.ServiceAccountNameKey, wellknown.ExtensionOfShootPrefix)

// ReservedRegistration is the entry of the webhook in a ValidatingWebhookConfiguration.
func ReservedRegistration() admissionregistrationv1.ValidatingWebhook {
	w := registration("reserved-service-accounts", "reserved-names", reservedCondition, nil)
	rule := func(resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
		}
	}
	w.Rules = []admissionregistrationv1.RuleWithOperations{
		rule([]string{"secrets"}, admissionregistrationv1.Create, admissionregistrationv1.Update),
		rule([]string{"serviceaccounts", "serviceaccounts/token"}, admissionregistrationv1.Create),
	}
	return w
}
