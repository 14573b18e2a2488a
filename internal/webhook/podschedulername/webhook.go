// Package podschedulername is the webhook that replaces the default scheduler of Pods by another one (A10 of the
// webhooks' contract). It reads no objects.
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
	// Name is the name of the webhook in logs and metrics.
	Name = "pod-scheduler-name"
	// Path is the URL path of the webhook. Unlike the name it contains "default".
	Path = "/webhooks/default-pod-scheduler-name"
)

type pod struct {
	Spec struct {
		SchedulerName string `json:"schedulerName,omitempty"`
	} `json:"spec"`
}

// Decide returns the function that sets the name of the scheduler in Pods.
func Decide(scheduler string) admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), func(_ context.Context, pod *pod) error {
		if pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
			pod.Spec.SchedulerName = scheduler // PSN-1: Pods with another scheduler keep it.
		}
		return nil
	})
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration. It
// selects all namespaces. A Pod that is admitted without the webhook keeps the default scheduler.
func Registration(feature.Installation) admissionregistrationv1.MutatingWebhook {
	entry := feature.PodEntry(Name, feature.Select(nil), nil)
	entry.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	return entry
}
