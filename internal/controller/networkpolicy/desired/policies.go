package desired

import (
	"slices"
	"strings"
	"unique"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Existing is a policy in the cluster that has the labels of a Service.
type Existing struct {
	types.NamespacedName
	Service         types.NamespacedName
	UID             types.UID
	ResourceVersion string
	Digest          Digest
	// gate is set if the policy selects clients by the labels of an ingress controller or Gateway, and not by labels
	// that request access.
	gate bool
}

func existingOf(o *networkingv1.NetworkPolicy) *Existing {
	service := ServiceOfPolicy(o)
	return &Existing{
		NamespacedName: types.NamespacedName{Namespace: one(o.Namespace), Name: o.Name}, Service: types.NamespacedName{Namespace: one(service.Namespace), Name: one(service.Name)},
		UID: o.UID, ResourceVersion: o.ResourceVersion, Digest: DigestOf(o), gate: isGate(&o.Spec),
	}
}

// one interns a name that many policies have.
func one(name string) string { return unique.Make(name).Value() }

func isGate(spec *networkingv1.NetworkPolicySpec) bool {
	if len(spec.Ingress) == 0 {
		return isGates(spec.PodSelector)
	}
	// One policy may allow both kinds of clients (merge).
	return slices.ContainsFunc(spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		return len(rule.From) > 0 && rule.From[0].PodSelector != nil && isGates(*rule.From[0].PodSelector)
	})
}

func isGates(clients metav1.LabelSelector) bool {
	for key := range clients.MatchLabels {
		if IsPodLabel(key) {
			return false
		}
	}
	return true
}

// SetPolicy records a policy with the labels of a Service. An unchanged policy returns no requests.
func (x *Index) SetPolicy(o *networkingv1.NetworkPolicy) []Request {
	e := existingOf(o)
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.policies[e.NamespacedName]
	if old != nil && old.UID == e.UID && old.Service == e.Service && old.Digest == e.Digest {
		old.ResourceVersion = e.ResourceVersion
		return nil
	}
	requests := x.forgetLocked(old)
	x.policies[e.NamespacedName] = e
	if x.observed[e.Service] == nil {
		x.observed[e.Service] = &shelf{}
	}
	x.observed[e.Service].add(e)
	return append(requests, Request{Service: e.Service, Policy: e.NamespacedName})
}

func (x *Index) removePolicyLocked(key types.NamespacedName) []Request {
	old := x.policies[key]
	delete(x.policies, key)
	return x.forgetLocked(old)
}

// forgetLocked removes a policy from its Service. It returns requests for the Service, and those that waited for the
// name.
func (x *Index) forgetLocked(e *Existing) []Request {
	if e == nil {
		return nil
	}
	shelf := x.observed[e.Service]
	if shelf.remove(e); shelf.isEmpty() {
		delete(x.observed, e.Service)
	}
	requests := []Request{{Service: e.Service, Policy: e.NamespacedName}}
	for waiting := range x.waiting[e.NamespacedName] {
		requests = append(requests, waiting)
	}
	delete(x.waiting, e.NamespacedName)
	return requests
}

// Knows reports whether the index has a policy.
func (x *Index) Knows(key types.NamespacedName) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.policies[key] != nil
}

// isControllers reports whether a policy is for the ingress controller.
func (e *Existing) isControllers() bool { return strings.HasSuffix(e.Name, fromIngressController) }
