// Package invalidation decides which static tokens of ServiceAccounts are invalidated. The controller labels their
// Secrets, and the webhook token-invalidator changes the data of labelled Secrets.
package invalidation

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
)

// Labels and annotations of section 3.1.
const (
	// LabelSkip is the label of a ServiceAccount whose tokens are not changed, whatever its value.
	LabelSkip = "token-invalidator.resources.gardener.cloud/skip"
	// LabelConsider is the label of a Secret whose token is invalidated, whatever its value.
	LabelConsider = "token-invalidator.resources.gardener.cloud/consider"
	// LabelPurpose is the label of a Secret by which the webhook's registration selects it.
	LabelPurpose = "resources.gardener.cloud/purpose"
	// Purpose is the value of LabelPurpose for Secrets with static tokens.
	Purpose = "token-invalidator"
)

// AccountOf returns the name of the ServiceAccount of a Secret with a static token; empty for other Secrets.
func AccountOf(annotations map[string]string) string {
	return annotations[corev1.ServiceAccountNameKey]
}

// Wanted reports whether the static tokens of a ServiceAccount are to be invalidated: it does not mount tokens
// automatically, and is not skipped (TI-6). A ServiceAccount without the field mounts them.
func Wanted(account *corev1.ServiceAccount) bool {
	_, skipped := account.Labels[LabelSkip]
	return !skipped && account.AutomountServiceAccountToken != nil && !*account.AutomountServiceAccountToken
}

// Changed reports whether an update of a ServiceAccount can change the wanted labels (TI-2).
func Changed(before, after *corev1.ServiceAccount) bool {
	was, skippedBefore := before.Labels[LabelSkip]
	is, skippedAfter := after.Labels[LabelSkip]
	mounted, mounts := before.AutomountServiceAccountToken, after.AutomountServiceAccountToken
	return was != is || skippedBefore != skippedAfter || (mounted == nil) != (mounts == nil) || mounted != nil && mounts != nil && *mounted != *mounts
}

// InUse returns the name of a Pod that uses a Secret in a volume, in the environment of a container or to pull
// images; empty if there is none (TI-8).
func InUse(secret string, pods []corev1.Pod) string {
	for i := range pods {
		for _, reference := range references.FromPodSpec(&pods[i].Spec) {
			if reference.Kind == references.Secret && reference.Name == secret {
				return pods[i].Name
			}
		}
	}
	return ""
}

// Labelled returns the labels that a Secret is to have, and whether they differ from the present ones. An existing
// purpose is kept (TI-5); consider sets or removes LabelConsider.
func Labelled(labels map[string]string, consider bool) (wanted map[string]string, differ bool) {
	wanted = map[string]string{}
	for key, value := range labels {
		wanted[key] = value
	}
	if _, found := wanted[LabelPurpose]; !found {
		wanted[LabelPurpose], differ = Purpose, true
	}
	_, considered := wanted[LabelConsider]
	switch {
	case consider && !considered:
		wanted[LabelConsider], differ = "true", true
	case !consider && considered:
		delete(wanted, LabelConsider)
		differ = true
	}
	return wanted, differ
}

// Strip removes unused fields from a ServiceAccount.
func Strip(account *corev1.ServiceAccount) {
	value, skipped := account.Labels[LabelSkip]
	account.Labels, account.Annotations, account.OwnerReferences, account.Finalizers = nil, nil, nil, nil
	if skipped {
		account.Labels = map[string]string{LabelSkip: value}
	}
	account.ImagePullSecrets = nil
}
