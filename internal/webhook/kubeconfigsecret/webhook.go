// Package kubeconfigsecret is the webhook that refuses Secrets with kubeconfigs that would make their reader open
// files, run programs or impersonate another user (B6 of the webhooks' contract). It reads only the request, and its
// responses contain no content of a Secret.
package kubeconfigsecret

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "kubeconfig_validator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/validate-kubeconfig-secrets"
)

const key = "kubeconfig"

// Rejections counts refused requests.
type Rejections interface {
	Count(r *admissionv1.AdmissionRequest, reason string)
}

// judged has the fields of a Secret that are validated.
type judged struct {
	Data struct {
		Kubeconfig *[]byte `json:"kubeconfig"`
	} `json:"data"`
}

// Decide returns the function that validates Secrets that are created, and updates that change the kubeconfig.
func Decide(rejections Rejections) admission.Func {
	secrets := corev1.SchemeGroupVersion.WithKind("Secret")
	return admission.OnChange(secrets, func(s *judged) any { return s.Data.Kubeconfig }, admission.Validate(secrets, func(ctx context.Context, secret, _ *corev1.Secret) (field.ErrorList, error) {
		raw, found := secret.Data[key]
		if !found {
			return nil, nil
		}
		kubeconfig, err := cluster.DecodeKubeconfig(raw)
		if err != nil {
			return nil, admission.Refuse(http.StatusBadRequest, "%s", quoted.ReplaceAllString(err.Error(), "$1<not shown>"))
		}
		why := fault(kubeconfig)
		if why == "" {
			return nil, nil
		}
		rejections.Count(admission.RequestFrom(ctx), "Rejected Kubeconfig")
		return field.ErrorList{field.Invalid(field.NewPath("data", key), field.OmitValueType{}, "secret contains invalid kubeconfig: "+why)}, nil
	}))
}

// quoted matches input that a parser repeats, from the first quote on: a later part may be without quotes, such as
// the list of all users if two have the same name. An apostrophe within a word is not a quote.
var quoted = regexp.MustCompile("(?s)(^|[^a-z])[\"'`].*$")

const validFields = "these are the valid fields: [client-certificate-data client-key-data token username password]"

// fault returns the first field that is not supported, in the order of names (KCS-2, WB-34).
func fault(kubeconfig *clientcmdapi.Config) string {
	for _, name := range slices.Sorted(maps.Keys(kubeconfig.AuthInfos)) {
		user := kubeconfig.AuthInfos[name]
		for _, not := range []struct {
			used bool
			what string
		}{
			{user.ClientCertificate != "", fmt.Sprintf("client certificate files are not supported (user %q)", name)},
			{user.ClientKey != "", fmt.Sprintf("client key files are not supported (user %q)", name)},
			{user.TokenFile != "", fmt.Sprintf("token files are not supported (user %q)", name)},
			{user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0, "impersonation is not supported"},
			{user.AuthProvider != nil, fmt.Sprintf("auth provider configurations are not supported (user %q)", name)},
			{user.Exec != nil, fmt.Sprintf("exec configurations are not supported (user %q)", name)},
		} {
			if not.used {
				return not.what + ", " + validFields
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kubeconfig.Clusters)) {
		if kubeconfig.Clusters[name].CertificateAuthority != "" {
			return fmt.Sprintf("certificate authority files are not supported (cluster %q), use certificate-authority-data", name)
		}
	}
	return ""
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration.
func Registration() admissionregistrationv1.ValidatingWebhook {
	return feature.GardenEntry("validate-kubeconfig-secrets", feature.OfUsers(), nil, feature.OnCreateAndUpdate("", "v1", "secrets"))
}
