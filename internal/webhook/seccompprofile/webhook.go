// Package seccompprofile is the webhook that gives Pods the seccomp profile of their container runtime (A10 of the
// webhooks' contract). A Pod with a profile keeps it. The selectors of Registration select the Pods.
package seccompprofile

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "seccomp-profile"
	// Path is the URL path of the webhook.
	Path = "/webhooks/seccomp-profile"
	// Skip is the label of Pods that the webhook does not change. Unlike the name it has no dash (SCC-3).
	Skip = "seccompprofile.resources.gardener.cloud/skip"
)

type pod struct {
	Spec struct {
		OS              *corev1.PodOS    `json:"os,omitempty"`
		SecurityContext *securityContext `json:"securityContext,omitempty"`
	} `json:"spec"`
}

type securityContext struct {
	SeccompProfile *corev1.SeccompProfile `json:"seccompProfile,omitempty"`
}

// Decide returns the function that changes Pods.
func Decide() admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), setProfile)
}

// setProfile sets the profile of a Pod without one (SCC-1, SCC-2). Profiles of containers are neither read nor
// changed, because they take precedence over the Pod's. The API server refuses Windows Pods with a profile (WB-14).
func setProfile(_ context.Context, pod *pod) error {
	if pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows {
		return nil
	}
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &securityContext{}
	}
	if profile := pod.Spec.SecurityContext.SeccompProfile; profile == nil || profile.Type == "" {
		pod.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return nil
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	return feature.PodEntry(Name, i.Namespaces(), feature.Select(nil, feature.Without(Skip), feature.NotIn("app", i.App())))
}
