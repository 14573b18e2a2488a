// Package podkubeapiserverloadbalancing is the webhook that routes Pods of a control plane to their kube-apiserver
// through the ingress gateway inside the cluster, which balances the load (A9 of the webhooks' contract).
//
// It reads single ConfigMaps and Services of the target, in any namespace: from a cache, and live if the cache lacks
// them.
package podkubeapiserverloadbalancing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/cluster/readthrough"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
)

const (
	// Name is the name of the webhook in logs and metrics.
	Name = "pod-kube-apiserver-load-balancing"
	// Path is the URL path of the webhook.
	Path = "/webhooks/pod-kube-apiserver-load-balancing"
	// ConfigMap is the name of the ConfigMap in a Pod's namespace with the addresses of the kube-apiserver.
	ConfigMap = "istio-internal-load-balancing"
	// HostsKey is the key of the host names of the kube-apiserver, separated by commas.
	HostsKey = "hosts"
	// NamespaceKey is the key of the ingress gateway's namespace.
	NamespaceKey = "istio-namespace"
	// Service is the name of the ingress gateway's Service.
	Service = "istio-ingressgateway-internal"

	kubeconfig  = "generic-token-kubeconfig"
	labelPrefix = "networking.resources.gardener.cloud/"
	// labelLimit is the maximum length of the name part of a label key.
	labelLimit = 63
)

type pod struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Volumes     []volume           `json:"volumes,omitempty"`
		HostAliases []corev1.HostAlias `json:"hostAliases,omitempty"`
	} `json:"spec"`
}

type volume struct {
	Secret *struct {
		SecretName string `json:"secretName,omitempty"`
	} `json:"secret,omitempty"`
	Projected *struct {
		Sources []source `json:"sources,omitempty"`
	} `json:"projected,omitempty"`
}

type source struct {
	Secret *struct {
		Name string `json:"name,omitempty"`
	} `json:"secret,omitempty"`
}

type webhook struct{ target readthrough.Getter }

// Decide returns the function that changes Pods.
func Decide(target readthrough.Getter) admission.Func {
	return admission.Mutate(corev1.SchemeGroupVersion.WithKind("Pod"), webhook{target}.balance)
}

// balance adds host aliases to a Pod that uses the generic kubeconfig: the gateway's addresses for the host names of
// its kube-apiserver.
func (w webhook) balance(ctx context.Context, pod *pod) error {
	if !slices.ContainsFunc(pod.Spec.Volumes, usesKubeconfig) {
		return nil
	}
	hosts, istio, err := w.gateway(ctx, admission.RequestFrom(ctx).Namespace)
	if err != nil || len(hosts) == 0 {
		return err
	}
	service := &corev1.Service{}
	if err := w.target.Get(ctx, client.ObjectKey{Namespace: istio, Name: Service}, service); err != nil {
		return fmt.Errorf("failed to get service %q: %w", istio+"/"+Service, err)
	}
	// A headless Service has the "address" None (WB-13).
	addresses := slices.DeleteFunc(slices.Clone(service.Spec.ClusterIPs), func(ip string) bool {
		_, err := netip.ParseAddr(ip)
		return err != nil
	})
	if len(addresses) == 0 {
		return fmt.Errorf("service %q has no cluster IP", istio+"/"+Service)
	}
	for _, ip := range addresses {
		addAlias(pod, ip, hosts)
	}
	if pod.Metadata.Labels == nil {
		pod.Metadata.Labels = map[string]string{}
	}
	pod.Metadata.Labels[LabelTo(istio)] = "allowed"
	return nil
}

// usesKubeconfig reports whether a volume has the generic kubeconfig (KLB-1).
func usesKubeconfig(v volume) bool {
	if v.Secret != nil && strings.HasPrefix(v.Secret.SecretName, kubeconfig) {
		return true
	}
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s source) bool {
		return s.Secret != nil && strings.HasPrefix(s.Secret.Name, kubeconfig)
	})
}

// gateway returns the host names of a namespace's kube-apiserver and the namespace of its gateway; no names if there
// is no gateway (KLB-2 to KLB-4).
func (w webhook) gateway(ctx context.Context, namespace string) (hosts []string, istio string, err error) {
	key := client.ObjectKey{Namespace: namespace, Name: ConfigMap}
	config := &corev1.ConfigMap{}
	if err := w.target.Get(ctx, key, config); apierrors.IsNotFound(err) {
		return nil, "", nil
	} else if err != nil {
		return nil, "", fmt.Errorf("failed to get %s configmap %q: %w", ConfigMap, key, err)
	}
	for _, name := range []string{HostsKey, NamespaceKey} {
		if config.Data[name] == "" {
			return nil, "", fmt.Errorf("%q key in configmap %q provides an empty value", name, key)
		}
	}
	return strings.Split(config.Data[HostsKey], ","), config.Data[NamespaceKey], nil
}

// addAlias adds an alias, unless the Pod already has it (KLB-6, WB-13).
func addAlias(pod *pod, ip string, hosts []string) {
	if !slices.ContainsFunc(pod.Spec.HostAliases, func(alias corev1.HostAlias) bool {
		return alias.IP == ip && !slices.ContainsFunc(hosts, func(host string) bool { return !slices.Contains(alias.Hostnames, host) })
	}) {
		pod.Spec.HostAliases = append(pod.Spec.HostAliases, corev1.HostAlias{IP: ip, Hostnames: hosts})
	}
}

// LabelTo returns the key of the label of Pods that may reach the gateway in a namespace (KLB-7).
func LabelTo(istio string) string {
	name := "to-" + istio + "-" + Service + "-tcp-9443"
	if len(name) > labelLimit {
		digest := sha256.Sum256([]byte(name))
		const digits = 5
		name = name[:labelLimit-digits-1] + "-" + hex.EncodeToString(digest[:])[:digits]
	}
	return labelPrefix + name
}

// Reads returns the webhook's reads: objects with two names, in any namespace.
func Reads() []feature.Read {
	var all []feature.Read
	for _, read := range []feature.Read{
		{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: "configmaps", Names: []string{ConfigMap}},
		{Kind: corev1.SchemeGroupVersion.WithKind("Service"), Resource: "services", Names: []string{Service}},
	} {
		read.Cluster, read.Form = feature.Target, feature.Live
		kept := read
		kept.Form, kept.Names, kept.FieldSelector = feature.Whole, nil, "metadata.name="+read.Names[0]
		all = append(all, kept, read)
	}
	return all
}

// Registrations are the entries of the webhook in a MutatingWebhookConfiguration, without their client configuration:
// one for the control planes of shoots and, in a garden, one for the virtual garden's. In a garden, Pods of
// resource-manager are excluded, as they must not wait for themselves (DEP-7).
func Registrations(i feature.Installation) []admissionregistrationv1.MutatingWebhook {
	entries := []admissionregistrationv1.MutatingWebhook{entry("", feature.Select(map[string]string{"gardener.cloud/role": "shoot"}), nil)}
	if i.Garden {
		entries = append(entries, entry("virtual-garden-", feature.Select(map[string]string{corev1.LabelMetadataName: "garden"}),
			feature.Select(nil, feature.NotIn("app", feature.Installation{}.App()))))
	}
	return entries
}

func entry(prefix string, namespaces, objects *metav1.LabelSelector) admissionregistrationv1.MutatingWebhook {
	return feature.PodEntry("pod-"+prefix+"kube-apiserver-load-balancing", namespaces, objects)
}
