// Package invalidation decides which static tokens of ServiceAccounts are invalidated. It labels their Secrets; the
// webhook token-invalidator changes the data of labelled Secrets.
package invalidation

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
)

// Labels and annotations (3.1).
const (
	// LabelSkip on a ServiceAccount, whatever its value: its tokens are left alone.
	LabelSkip = "token-invalidator.resources.gardener.cloud/skip"
	// LabelConsider on a Secret: its token is invalid. Its presence counts.
	LabelConsider = "token-invalidator.resources.gardener.cloud/consider"
	// LabelPurpose on a Secret is the label that the webhook's registration selects.
	LabelPurpose = "resources.gardener.cloud/purpose"
	// Purpose is the value for Secrets with static tokens.
	Purpose = "token-invalidator"
)

// AccountOf returns the name of the ServiceAccount whose static token a Secret is for; empty if it is for none.
func AccountOf(annotations map[string]string) string {
	return annotations[corev1.ServiceAccountNameKey]
}

// Wanted reports whether the static tokens of a ServiceAccount are to be invalidated: it does not mount tokens by itself, and is not skipped
// (TI-6). A ServiceAccount that says nothing about mounting does mount.
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

// InUse returns the name of a Pod that uses a Secret, by a volume, an environment or to pull images, in any of its containers; empty if none
// does (TI-8).
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

// Labelled returns the labels that a Secret is to have, and whether they differ from those that it has. A purpose that is there is left
// alone (TI-5), and the label that is looked at by the webhook is there or not.
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

// Strip removes from a ServiceAccount the fields that no decision needs.
func Strip(account *corev1.ServiceAccount) {
	value, skipped := account.Labels[LabelSkip]
	account.Labels, account.Annotations, account.OwnerReferences, account.Finalizers = nil, nil, nil, nil
	if skipped {
		account.Labels = map[string]string{LabelSkip: value}
	}
	account.ImagePullSecrets = nil
}
