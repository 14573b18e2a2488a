// Package authenticationconfig is the webhook that validates the authentication configurations to which Shoots refer
// (B3 of the webhooks' contract). It reads ConfigMaps live, and Shoots from a cache, like all webhooks of package
// configref. For Shoots with a managed issuer it also reads, live, the metadata of their Namespace and the Secret in
// the garden namespace with the issuer's host.
package authenticationconfig

import (
	"context"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/configref"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "authenticationconfig_validator"
	// Path is the URL path of the webhook.
	Path = "/webhooks/authentication-configuration"

	purpose    = "authentication configuration"
	issuerRole = "shoot-service-account-issuer"
)

// Reads returns the webhook's reads of the garden.
func Reads() []feature.Read {
	return append(configref.Reads(),
		feature.Read{Cluster: feature.Garden, Kind: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets", Namespace: wellknown.Garden, Form: feature.List},
		feature.Read{Cluster: feature.Garden, Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", ClusterScoped: true, Form: feature.Live})
}

// Decide returns the function that validates Shoots and the ConfigMaps with authentication configurations. The live
// reader reads ConfigMaps, Secrets and Namespaces.
func Decide(shoots *referrers.Index, live client.Reader) admission.Func {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	c := configurations{configref.NewDecoder(scheme), authenticationcel.NewDefaultCompiler(), configref.NewExpressions(), live}
	flow := configref.Flow{Purpose: purpose, Key: "config.yaml", Reference: reference, Relevant: relevant, Check: c.check, Shoots: shoots, ConfigMaps: live}
	return flow.Decide()
}

func reference(server *gardencorev1beta1.KubeAPIServer) string {
	if server.StructuredAuthentication == nil {
		return ""
	}
	return server.StructuredAuthentication.ConfigMapName
}

// relevant reports whether an update changes the Shoot's own issuers, or sets the older field for anonymous requests
// (CV-6).
func relevant(now, old *gardencorev1beta1.Shoot) bool {
	is, was := ptr.Deref(now.Spec.Kubernetes.KubeAPIServer, gardencorev1beta1.KubeAPIServer{}), ptr.Deref(old.Spec.Kubernetes.KubeAPIServer, gardencorev1beta1.KubeAPIServer{})
	return managed(now) != managed(old) || is.EnableAnonymousAuthentication != nil && was.EnableAnonymousAuthentication == nil || !slices.Equal(issuersOf(is), issuersOf(was))
}

func managed(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Annotations[wellknown.Issuer] == wellknown.ManagedIssuer
}

// issuersOf returns the issuers in the specification of a Shoot, sorted.
func issuersOf(server gardencorev1beta1.KubeAPIServer) []string {
	if server.ServiceAccountConfig == nil {
		return nil
	}
	all := slices.Clone(server.ServiceAccountConfig.AcceptedIssuers)
	if issuer := server.ServiceAccountConfig.Issuer; issuer != nil {
		all = append(all, *issuer)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

type configurations struct {
	decoder     configref.Decoder
	compiler    authenticationcel.Compiler
	expressions *configref.Expressions
	live        client.Reader
}

// since is the first version of Kubernetes that reads configurations of v1.
var since = version.MajorMinor(1, 34)

// check enforces AUT-1 to AUT-4. An issuer of one Shoot is refused for all Shoots that use the configuration.
func (c configurations) check(ctx context.Context, content string, users []*gardencorev1beta1.Shoot) error {
	object, kind, err := c.decoder.Decode(purpose, content)
	if err != nil {
		return err
	}
	configuration, is := object.(*apiserver.AuthenticationConfiguration)
	if !is {
		return admission.Refuse(http.StatusInternalServerError, "failed to cast to %s type: %v", purpose, kind)
	}
	if err := configref.Since(since, kind, purpose, users); err != nil {
		return err
	}
	disallowed, err := c.disallowed(ctx, users)
	if err != nil {
		return err
	}
	err = c.expressions.Check(ctx, purpose, expressionsOf(configuration), func(compilation *configref.Compilation) error {
		compiler := bounded{c.compiler, compilation}
		return configref.Invalid(purpose, validation.ValidateAuthenticationConfiguration(compiler, configuration, shown(disallowed, configuration)))
	})
	if err != nil {
		return err
	}
	if older := inOlderWay(users); configuration.Anonymous != nil && len(older) > 0 {
		return admission.Refuse(http.StatusUnprocessableEntity,
			"cannot use anonymous authentication configuration when the following shoots have the legacy configuration enabled: %s", strings.Join(older, ", "))
	}
	return nil
}

// inOlderWay returns the names of Shoots that set enableAnonymousAuthentication, the older field for anonymous
// requests, to true or false.
func inOlderWay(users []*gardencorev1beta1.Shoot) []string {
	var all []string
	for i := range users {
		if server := users[i].Spec.Kubernetes.KubeAPIServer; server != nil && server.EnableAnonymousAuthentication != nil {
			all = append(all, users[i].Name)
		}
	}
	slices.Sort(all)
	return all
}

// disallowed returns the Shoots' own issuers (AUT-2).
func (c configurations) disallowed(ctx context.Context, users []*gardencorev1beta1.Shoot) ([]string, error) {
	var all []string
	host, known := "", false
	projects := map[string]string{} // By namespace.
	for _, shoot := range users {
		all = append(all, issuersOf(ptr.Deref(shoot.Spec.Kubernetes.KubeAPIServer, gardencorev1beta1.KubeAPIServer{}))...)
		for _, address := range shoot.Status.AdvertisedAddresses {
			if address.Name == "service-account-issuer" || address.Name == "internal" || address.Name == "external" {
				all = append(all, address.URL)
			}
		}
		if !managed(shoot) || shoot.UID == "" {
			continue
		}
		var err error
		if !known {
			if host, err = c.issuerHost(ctx); err != nil {
				return nil, err
			}
			known = true
		}
		if host == "" {
			continue
		}
		project, read := projects[shoot.Namespace]
		if !read {
			if project, err = c.project(ctx, shoot.Namespace); err != nil {
				return nil, err
			}
			projects[shoot.Namespace] = project
		}
		if project != "" {
			all = append(all, "https://"+host+"/projects/"+project+"/shoots/"+string(shoot.UID)+"/issuer")
		}
	}
	return all, nil
}

// issuerHost returns the host of the landscape's issuer; empty if there is none.
func (c configurations) issuerHost(ctx context.Context) (string, error) {
	list := &corev1.SecretList{}
	if err := c.live.List(ctx, list, client.InNamespace(wellknown.Garden), client.MatchingLabels{"gardener.cloud/role": issuerRole}); err != nil {
		return "", admission.Refuse(http.StatusInternalServerError, "failed to list service account issuer secrets: %s", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	return string(list.Items[0].Data["hostname"]), nil
}

// project returns the project of a namespace; empty if there is none.
func (c configurations) project(ctx context.Context, name string) (string, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.live.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return "", admission.Refuse(http.StatusInternalServerError, "failed to get namespace %s: %s", name, err)
	}
	return namespace.Labels[wellknown.Project], nil
}

// Registration is the entry of the webhook in a ValidatingWebhookConfiguration, without its client configuration.
func Registration() admissionregistrationv1.ValidatingWebhook {
	return configref.Registration("authentication-configuration")
}
