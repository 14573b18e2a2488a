// Package podschedulername is the webhook that gives Pods of the default scheduler to another one (A10 of the webhooks' contract).
// It reads nothing.
package podschedulername

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the webhook's in logs and metrics.
	Name = "pod-scheduler-name"
	// Path is the URL path of the webhook; unlike the name it contains "default".
	Path = "/webhooks/default-pod-scheduler-name"
)

// pod has the fields that the rule needs.
type pod struct {
	Spec struct {
		SchedulerName string `json:"schedulerName,omitempty"`
	} `json:"spec"`
}

// Decide changes Pods; they get a scheduler of this name.
func Decide(scheduler string) admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), func(_ context.Context, pod *pod) error {
		if pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
			pod.Spec.SchedulerName = scheduler // PSN-1; whoever names a scheduler keeps it.
		}
		return nil
	})
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, but for how it is reached. It is about all namespaces, and a
// Pod that could not be looked at is left to the default scheduler.
func Registration(feature.Installation) admissionregistrationv1.MutatingWebhook {
	entry := feature.PodEntry(Name, feature.Select(nil), nil)
	entry.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	return entry
}
