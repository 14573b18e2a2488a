// Package kubernetesservicehost is the webhook that sets the host name of the API server in the containers of Pods
// (A3 of the webhooks' contract), so that they reach it without the proxy in between. It reads no objects.
package kubernetesservicehost

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "kubernetes-service-host"
	// Path is the URL path of the webhook.
	Path = "/webhooks/kubernetes-service-host"
	// Inject is the label of Pods and namespaces; with the value "disable" the webhook does not change them (KSH-6).
	Inject = "apiserver-proxy.networking.gardener.cloud/inject"

	variable = "KUBERNETES_SERVICE_HOST"
)

type pod struct {
	Spec struct {
		InitContainers []container `json:"initContainers,omitempty"`
		Containers     []container `json:"containers,omitempty"`
	} `json:"spec"`
}

type container struct {
	Name string   `json:"name,omitempty"`
	Env  []envVar `json:"env,omitempty"`
}

type envVar struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Decide returns the function that changes Pods; host is the host name of the API server (KSH-4).
func Decide(host string) admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), func(_ context.Context, pod *pod) error {
		// Ephemeral containers are added later, by a subresource that the webhook is not registered for (KSH-3).
		for _, containers := range [][]container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				inject(&containers[i], host)
			}
		}
		return nil
	})
}

// inject appends the variable to a container, unless the container already has it, with any source of the value
// (KSH-1, KSH-2, R15).
func inject(c *container, host string) {
	if !slices.ContainsFunc(c.Env, func(e envVar) bool { return e.Name == variable }) {
		c.Env = append(c.Env, envVar{Name: variable, Value: host})
	}
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration. It
// selects all namespaces. A Pod that is admitted without the webhook uses the proxy.
func Registration(feature.Installation) admissionregistrationv1.MutatingWebhook {
	entry := feature.PodEntry(Name, feature.Select(nil, feature.NotIn(Inject, "disable")), feature.Select(nil, feature.NotIn(Inject, "disable")))
	entry.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	entry.TimeoutSeconds = ptr.To(int32(2))
	entry.ReinvocationPolicy = ptr.To(admissionregistrationv1.NeverReinvocationPolicy)
	return entry
}
