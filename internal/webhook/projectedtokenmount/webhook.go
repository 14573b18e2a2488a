// Package projectedtokenmount is the webhook that mounts a ServiceAccount token into Pods whose ServiceAccount
// disables automounting (A4 of the webhooks' contract). The token is projected and has the configured lifetime.
//
// It reads single ServiceAccounts of the target, in any namespace: from a cache, and live if the cache lacks them.
package projectedtokenmount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/cluster/readthrough"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "projected-token-mount"
	// Path is the URL path of the webhook.
	Path = "/webhooks/mount-projected-service-account-token"
	// Skip is the label of Pods that the webhook does not change.
	Skip = "projected-token-mount.resources.gardener.cloud/skip"
	// Expiration is the annotation of Pods with the lifetime of their token in seconds.
	Expiration = "projected-token-mount.resources.gardener.cloud/expiration-seconds"

	volumePrefix = "kube-api-access-"
	volumeName   = volumePrefix + "gardener"
	mountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
	// leastExpiration and mostExpiration are the limits of the API server, in seconds.
	leastExpiration, mostExpiration = 600, 1 << 32
)

type pod struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		ServiceAccountName           string      `json:"serviceAccountName,omitempty"`
		AutomountServiceAccountToken *bool       `json:"automountServiceAccountToken,omitempty"`
		Volumes                      []volume    `json:"volumes,omitempty"`
		InitContainers               []container `json:"initContainers,omitempty"`
		Containers                   []container `json:"containers,omitempty"`
	} `json:"spec"`
}

// volume has the fields of the added volume; other volumes stay as they are.
type volume struct {
	Name      string                        `json:"name"`
	Projected *corev1.ProjectedVolumeSource `json:"projected,omitempty"`
}

type container struct {
	Name         string        `json:"name,omitempty"`
	VolumeMounts []volumeMount `json:"volumeMounts,omitempty"`
}

type volumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly,omitempty"`
}

type webhook struct {
	target     readthrough.Getter
	expiration int64
}

// Decide returns the function that changes Pods. expiration is the default lifetime of tokens in seconds.
func Decide(target readthrough.Getter, expiration int64) admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), webhook{target, expiration}.mount)
}

// mount mounts a token into a Pod that uses its ServiceAccount's token and would not get one (PTM-1 to PTM-7). A Pod
// that declines a token is not changed (C23).
func (w webhook) mount(ctx context.Context, pod *pod) error {
	if name := pod.Spec.ServiceAccountName; name == "" || name == "default" {
		return nil
	}
	automounts, err := w.automounts(ctx, client.ObjectKey{Namespace: admission.RequestFrom(ctx).Namespace, Name: pod.Spec.ServiceAccountName})
	if err != nil || automounts || !ptr.Deref(pod.Spec.AutomountServiceAccountToken, true) || slices.ContainsFunc(pod.Spec.Volumes, isToken) {
		return err
	}
	expiration, err := w.expirationOf(pod)
	if err != nil {
		return err
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, tokenVolume(expiration))
	// Ephemeral containers are added later, by a subresource that the webhook is not registered for (PTM-9).
	for _, containers := range [][]container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			mountInto(&containers[i])
		}
	}
	return nil
}

// automounts reports whether a ServiceAccount enables automounting (PTM-2, PTM-3).
func (w webhook) automounts(ctx context.Context, key client.ObjectKey) (bool, error) {
	account := &corev1.ServiceAccount{}
	if err := w.target.Get(ctx, key, account); err != nil {
		return false, named(err, key)
	}
	return ptr.Deref(account.AutomountServiceAccountToken, true), nil
}

// named adds the name of the ServiceAccount to the error of reading it (WB-23), and keeps the status.
func named(err error, key client.ObjectKey) error {
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status := known.Status()
		status.Message += fmt.Sprintf(" (ServiceAccount %q)", key)
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("failed to get ServiceAccount %q: %w", key, err)
}

// isToken reports whether a volume is for tokens: this webhook's, or the API server's (PTM-5).
func isToken(v volume) bool { return strings.HasPrefix(v.Name, volumePrefix) }

// expirationOf returns the lifetime of a Pod's token in seconds (PTM-6, WB-11).
func (w webhook) expirationOf(pod *pod) (int64, error) {
	value, found := pod.Metadata.Annotations[Expiration]
	if !found {
		return w.expiration, nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("annotation %s: %w", Expiration, err)
	case seconds < leastExpiration || seconds > mostExpiration:
		return 0, fmt.Errorf("annotation %s: must be from %d to %d, got %d", Expiration, leastExpiration, mostExpiration, seconds)
	}
	return seconds, nil
}

// tokenVolume returns the volume with the token, the CA and the namespace (PTM-7, PTM-8).
func tokenVolume(expiration int64) volume {
	return volume{Name: volumeName, Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expiration, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}
}

// mountInto mounts the volume into a container, unless another volume is mounted at its path (WB-10).
func mountInto(c *container) {
	if !slices.ContainsFunc(c.VolumeMounts, func(m volumeMount) bool { return m.MountPath == mountPath }) {
		c.VolumeMounts = append(c.VolumeMounts, volumeMount{Name: volumeName, MountPath: mountPath, ReadOnly: true})
	}
}

// Reads returns the webhook's reads. Of ServiceAccounts it keeps only the setting for automounting.
func Reads() []feature.Read {
	account := feature.Read{Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Resource: "serviceaccounts", Form: feature.Whole, Strip: feature.Stripping(func(account *corev1.ServiceAccount) {
		account.Labels, account.Annotations, account.Secrets, account.ImagePullSecrets = nil, nil, nil, nil
	})}
	live := account
	live.Form = feature.Live
	return []feature.Read{account, live}
}

// Registration is the entry of the webhook in a MutatingWebhookConfiguration, without its client configuration.
func Registration(i feature.Installation) admissionregistrationv1.MutatingWebhook {
	return feature.PodEntry(Name, i.Namespaces(), feature.Select(nil, feature.Without(Skip), feature.NotIn("app", i.App())))
}
