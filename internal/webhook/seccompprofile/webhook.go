// Package seccompprofile is the webhook that gives Pods the seccomp profile of their container runtime (A10 of the webhooks' contract).
// A Pod that names a profile keeps it; who is asked about at all is said by the selectors of Registration.
package seccompprofile

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the webhook's in logs and metrics.
	Name = "seccomp-profile"
	// Path is the URL path of the webhook.
	Path = "/webhooks/seccomp-profile"
	// Skip is the label of Pods that are left alone; unlike the name it has no dash (SCC-3).
	Skip = "seccompprofile.resources.gardener.cloud/skip"
)

// pod has the fields that the rule needs.
type pod struct {
	Spec struct {
		OS              *corev1.PodOS    `json:"os,omitempty"`
		SecurityContext *securityContext `json:"securityContext,omitempty"`
	} `json:"spec"`
}

type securityContext struct {
	SeccompProfile *corev1.SeccompProfile `json:"seccompProfile,omitempty"`
}

// Decide changes Pods.
func Decide() admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), setProfile)
}

// setProfile sets the profile of a Pod that names none (SCC-1, SCC-2). Profiles of containers are neither read nor changed: they come
// before the Pod's. The API server refuses Windows Pods that have a profile (WB-14).
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

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, but for how it is reached.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	return feature.PodEntry(Name, i.Namespaces(), feature.Select(nil, feature.Without(Skip), feature.NotIn("app", i.App())))
}
