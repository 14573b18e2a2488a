// Package authorizationconfig is the webhook that validates the authorization configurations to which Shoots refer
// (B4 of the webhooks' contract). It reads ConfigMaps live, and Shoots from a cache, like all webhooks of package
// configref.
package authorizationconfig

import (
	"context"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/configref"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "authorizationconfig_validator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/authorization-configuration"

	purpose = "authorization configuration"
)

// Reads returns the webhook's reads of the garden.
func Reads() []feature.Read { return configref.Reads() }

// Decide returns the function that validates Shoots and the ConfigMaps with authorization configurations.
func Decide(shoots *referrers.Index, configMaps configref.Getter) admission.Func {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	c := configurations{configref.NewDecoder(scheme), authorizationcel.NewDefaultCompiler(), configref.NewExpressions()}
	flow := configref.Flow{Purpose: purpose, Key: "config.yaml", Reference: reference, Relevant: relevant, Check: c.check, Shoots: shoots, ConfigMaps: configMaps}
	return flow.Decide()
}

func reference(server *gardencorev1beta1.KubeAPIServer) string {
	if server.StructuredAuthorization == nil {
		return ""
	}
	return server.StructuredAuthorization.ConfigMapName
}

// relevant reports whether an update changes the authorizers that have kubeconfigs (CV-6).
func relevant(now, old *gardencorev1beta1.Shoot) bool {
	return !authorizersOf(now).Equal(authorizersOf(old))
}

// authorizersOf returns the names of the authorizers for which a Shoot has kubeconfigs.
func authorizersOf(shoot *gardencorev1beta1.Shoot) sets.Set[string] {
	all := sets.New[string]()
	if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil && server.StructuredAuthorization != nil {
		for _, kubeconfig := range server.StructuredAuthorization.Kubeconfigs {
			all.Insert(kubeconfig.AuthorizerName)
		}
	}
	return all
}

type configurations struct {
	decoder     configref.Decoder
	compiler    authorizationcel.Compiler
	expressions *configref.Expressions
}

// since is the first version of Kubernetes that reads configurations of v1.
var since = version.MajorMinor(1, 32)

// check enforces AUZ-1 to AUZ-4, in this order (AUZ-5). The landscape sets the connections of webhooks, so no file is
// ever read.
func (c configurations) check(ctx context.Context, content string, users []*gardencorev1beta1.Shoot) error {
	object, kind, err := c.decoder.Decode(purpose, content)
	if err != nil {
		return err
	}
	configuration, is := object.(*apiserver.AuthorizationConfiguration)
	if !is {
		return admission.Refuse(http.StatusInternalServerError, "failed to cast to %s type: %v", purpose, kind)
	}
	if err := configref.Since(since, kind, purpose, users); err != nil {
		return err
	}
	if err := configref.Invalid(purpose, withoutConnections(configuration)); err != nil {
		return err
	}
	if err := withKubeconfigs(ctx, configuration, users); err != nil {
		return err
	}
	known := sets.New(string(apiserver.TypeWebhook))
	return c.expressions.Check(ctx, purpose, expressionsOf(configuration), func(compilation *configref.Compilation) error {
		compiler := bounded{c.compiler, compilation}
		return configref.Invalid(purpose, validation.ValidateAuthorizationConfiguration(compiler, field.NewPath(""), configuration, known, known))
	})
}

// withoutConnections refuses connections of webhooks in the configuration, and then sets them itself (AUZ-2).
func withoutConnections(configuration *apiserver.AuthorizationConfiguration) field.ErrorList {
	var all field.ErrorList
	for i := range configuration.Authorizers {
		webhook := configuration.Authorizers[i].Webhook
		if webhook == nil {
			continue
		}
		if webhook.ConnectionInfo != (apiserver.WebhookConnectionInfo{}) {
			all = append(all, field.Forbidden(field.NewPath("authorizers").Index(i).Child("connectionInfo"), "connectionInfo is not allowed to be set"))
		}
		webhook.ConnectionInfo.Type = apiserver.AuthorizationWebhookConnectionInfoTypeInCluster
	}
	return all
}

// withKubeconfigs requires that each Shoot has a kubeconfig for each webhook (AUZ-3).
func withKubeconfigs(ctx context.Context, configuration *apiserver.AuthorizationConfiguration, users []*gardencorev1beta1.Shoot) error {
	has := make([]sets.Set[string], len(users))
	for i := range users {
		has[i] = authorizersOf(users[i])
	}
	for _, a := range configuration.Authorizers {
		if a.Type != apiserver.TypeWebhook {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if i := slices.IndexFunc(has, func(names sets.Set[string]) bool { return !names.Has(a.Name) }); i >= 0 {
			return admission.Refuse(http.StatusUnprocessableEntity, "provided invalid %s: must provide kubeconfig secret name reference for webhook authorizer %.253q in shoot %s/%s",
				purpose, a.Name, users[i].Namespace, users[i].Name)
		}
	}
	return nil
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration.
func Registration() admissionregistrationv1.ValidatingWebhook {
	return configref.Registration("authorization-configuration")
}
