package desired

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Policy is a wanted policy of a Service.
type Policy struct {
	types.NamespacedName
	Service     types.NamespacedName
	Description string
	Spec        networkingv1.NetworkPolicySpec
}

// Object returns the policy as an object to create.
func (p *Policy) Object() *networkingv1.NetworkPolicy {
	object := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	p.Apply(object)
	return object
}

// Apply sets the managed fields of a policy; other labels and annotations stay (NP-9).
func (p *Policy) Apply(object *networkingv1.NetworkPolicy) {
	metav1.SetMetaDataLabel(&object.ObjectMeta, LabelServiceName, p.Service.Name)
	metav1.SetMetaDataLabel(&object.ObjectMeta, LabelServiceNamespace, p.Service.Namespace)
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, AnnotationDescription, p.Description)
	p.Spec.DeepCopyInto(&object.Spec)
}

// Digest is a digest of the managed fields of a policy: the labels, the description and the spec.
type Digest [16]byte

// Digest returns the digest of a wanted policy, which DigestOf also returns once the policy is written.
func (p *Policy) Digest() Digest { return digest(p.Service, p.Description, &p.Spec) }

// DigestOf returns the digest of a policy in a cluster.
func DigestOf(object *networkingv1.NetworkPolicy) Digest {
	return digest(ServiceOfPolicy(object), object.Annotations[AnnotationDescription], &object.Spec)
}

// ServiceOfPolicy returns the Service in a policy's labels. Either part of the name may be empty.
func ServiceOfPolicy(object *networkingv1.NetworkPolicy) types.NamespacedName {
	return types.NamespacedName{Namespace: object.Labels[LabelServiceNamespace], Name: object.Labels[LabelServiceName]}
}

func digest(service types.NamespacedName, description string, spec *networkingv1.NetworkPolicySpec) Digest {
	if !isNormal(spec) {
		spec = spec.DeepCopy()
		eachPort(spec, func(p *networkingv1.NetworkPolicyPort) {
			if p.Protocol == nil {
				tcp := corev1.ProtocolTCP
				p.Protocol = &tcp
			}
		})
	}
	content, err := json.Marshal(spec)
	if err != nil {
		// JSON can express every value of this type, so this cannot happen.
		panic(fmt.Sprintf("encoding a NetworkPolicySpec: %v", err))
	}
	h := sha256.New()
	for _, part := range []string{service.Namespace, service.Name, description} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	_, _ = h.Write(content)
	return Digest(h.Sum(nil)[:16])
}

// isNormal reports whether a spec is in the API server's form, in which each port has a protocol.
func isNormal(spec *networkingv1.NetworkPolicySpec) bool {
	normal := true
	eachPort(spec, func(p *networkingv1.NetworkPolicyPort) { normal = normal && p.Protocol != nil })
	return normal
}

func eachPort(spec *networkingv1.NetworkPolicySpec, do func(*networkingv1.NetworkPolicyPort)) {
	for i := range spec.Ingress {
		for j := range spec.Ingress[i].Ports {
			do(&spec.Ingress[i].Ports[j])
		}
	}
	for i := range spec.Egress {
		for j := range spec.Egress[i].Ports {
			do(&spec.Egress[i].Ports[j])
		}
	}
}

// merge adds the rules of another policy of the same name, so that none of the two reasons is lost (NP-12 and NP-17
// have the same name when an Istio namespace is also selected). It returns false if one policy cannot have the rules
// of both.
func (p *Policy) merge(other *Policy) bool {
	if !reflect.DeepEqual(p.Spec.PodSelector, other.Spec.PodSelector) || !slices.Equal(p.Spec.PolicyTypes, other.Spec.PolicyTypes) {
		return false
	}
	for _, rule := range other.Spec.Ingress {
		if !slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool { return reflect.DeepEqual(r, rule) }) {
			p.Spec.Ingress = append(p.Spec.Ingress, rule)
		}
	}
	for _, rule := range other.Spec.Egress {
		if !slices.ContainsFunc(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool { return reflect.DeepEqual(r, rule) }) {
			p.Spec.Egress = append(p.Spec.Egress, rule)
		}
	}
	if !strings.Contains(p.Description, other.Description) {
		p.Description += " " + other.Description
	}
	return true
}

// peers are Pods in a namespace. areControllers is set for the Pods of the ingress controller.
type peers struct {
	namespace      string
	selector       metav1.LabelSelector
	areControllers bool
}

// seenFrom returns the peers of a policy in a namespace.
func (p peers) seenFrom(namespace string) networkingv1.NetworkPolicyPeer {
	peer := networkingv1.NetworkPolicyPeer{PodSelector: &p.selector}
	if p.namespace != namespace {
		peer.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: p.namespace}}
	}
	return peer
}

// allowIngress returns the policy that lets clients reach the Pods of a Service at a port.
func (s *Service) allowIngress(name string, t target, clients peers, format DescriptionFormat) *Policy {
	return &Policy{
		NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: name}, Service: s.NamespacedName,
		Description: format.ingress(s.NamespacedName, t, clients),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			PodSelector: s.podSelector(),
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{clients.seenFrom(s.Namespace)}, Ports: []networkingv1.NetworkPolicyPort{t.policyPort()},
			}},
		},
	}
}

// allowEgress returns the policy that lets clients out to the Pods of a Service at a port.
func (s *Service) allowEgress(name string, t target, clients peers, format DescriptionFormat) *Policy {
	return &Policy{
		NamespacedName: types.NamespacedName{Namespace: clients.namespace, Name: name}, Service: s.NamespacedName,
		Description: format.egress(s.NamespacedName, t, clients),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			PodSelector: clients.selector,
			Egress: []networkingv1.NetworkPolicyEgressRule{{
				To:    []networkingv1.NetworkPolicyPeer{peers{namespace: s.Namespace, selector: s.podSelector()}.seenFrom(clients.namespace)},
				Ports: []networkingv1.NetworkPolicyPort{t.policyPort()},
			}},
		},
	}
}

// allowWorld returns the policy that lets everyone reach the Pods of a Service (NP-25: no ports means all of them).
func (s *Service) allowWorld(ports []networkingv1.NetworkPolicyPort, format DescriptionFormat) *Policy {
	return &Policy{
		NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.worldName()}, Service: s.NamespacedName,
		Description: format.world(s.NamespacedName, ports),
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			PodSelector: s.podSelector(),
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: ports}},
		},
	}
}

func (s *Service) worldName() string { return ingressTo + s.Name + fromWorld }

func (s *Service) podSelector() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: s.selector}
}
