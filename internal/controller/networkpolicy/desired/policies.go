package desired

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/controller/namespaced"
)

// Existing is a policy in the cluster that carries the labels of a Service.
type Existing struct {
	types.NamespacedName
	Service         types.NamespacedName
	UID             types.UID
	ResourceVersion string
	Digest          Digest
	// ahead is set while it is known from the answer to a write, before any event about it.
	ahead bool
	// behind is the last event that was older than the answer, or came before it: what counts if it is that of a list whose end comes next
	// (etcd may have been restored).
	behind *Existing
	// gate is set if its clients are chosen by other labels than those with which Pods ask for access: Pods of a gate.
	gate bool
}

func existingOf(o *networkingv1.NetworkPolicy) *Existing {
	service := ServiceOfPolicy(o)
	return &Existing{
		NamespacedName: types.NamespacedName{Namespace: one(o.Namespace), Name: o.Name}, Service: types.NamespacedName{Namespace: one(service.Namespace), Name: one(service.Name)},
		UID: o.UID, ResourceVersion: o.ResourceVersion, Digest: DigestOf(o), gate: isGate(&o.Spec),
	}
}

// one returns the one copy of a name that many policies have.
func one(name string) string { return unique.Make(name).Value() }

func isGate(spec *networkingv1.NetworkPolicySpec) bool {
	if len(spec.Ingress) == 0 {
		return isGates(spec.PodSelector)
	}
	// Clients of both kinds may share a way in (merge).
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

// SetPolicy reports a policy with the labels of a Service. A policy that is known already, from an answer or from before, asks for nothing.
func (x *Index) SetPolicy(o *networkingv1.NetworkPolicy) []Request {
	e := existingOf(o)
	x.mu.Lock()
	defer x.mu.Unlock()
	// Events arrive in order, so that an event is older than the known policy only if an answer delivered that policy.
	if old := x.policies[e.NamespacedName]; old != nil && old.ahead && old.UID == e.UID && isOlder(e.ResourceVersion, old.ResourceVersion) {
		old.behind = e
		return nil
	}
	return x.setPolicyLocked(e)
}

func (x *Index) setPolicyLocked(e *Existing) []Request {
	old := x.policies[e.NamespacedName]
	delete(x.deleted, e.NamespacedName)
	if old != nil && old.UID == e.UID && old.Service == e.Service && old.Digest == e.Digest {
		old.ResourceVersion, old.ahead, old.behind = e.ResourceVersion, e.ahead, e.behind
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
	for _, w := range x.writing[key] {
		w.disturbed = true
	}
	old := x.policies[key]
	delete(x.policies, key)
	delete(x.deleted, key)
	return x.forgetLocked(old)
}

// retainPoliciesLocked ends a complete list of the policies in a namespace, or in all namespaces for the empty name. SetPolicy delivered the policies of the list
// before. The list has the last word: policies that it does not have are gone, also those that an answer delivered.
func (x *Index) retainPoliciesLocked(namespace string, has Has) []Request {
	for key, all := range x.writing {
		for _, w := range all {
			w.disturbed = w.disturbed || namespaced.In(namespace, key.Namespace)
		}
	}
	var requests []Request
	for key, e := range x.policies {
		switch {
		case !namespaced.In(namespace, key.Namespace):
		case !has(key.Namespace, key.Name):
			requests = append(requests, x.removePolicyLocked(key)...)
		case e.behind != nil:
			requests = append(requests, x.setPolicyLocked(e.behind)...)
		}
	}
	for key, e := range x.deleted {
		switch {
		case !namespaced.In(namespace, key.Namespace):
		case has(key.Namespace, key.Name):
			requests = append(requests, x.setPolicyLocked(e)...)
		default:
			delete(x.deleted, key)
		}
	}
	return requests
}

// forgetLocked takes a policy out of the lists of its Service. It returns who is concerned: the Service, and those that waited for the name.
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

// isOlder reports whether a resource version comes before another. A text that is no number is never older.
func isOlder(version, than string) bool {
	a, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return false
	}
	b, err := strconv.ParseUint(than, 10, 64)
	return err == nil && a < b
}

// Writing is a write of a policy that is under way.
type Writing struct {
	key types.NamespacedName
	// disturbed is set if, since the write began, an event reported the deletion of the policy or all policies were
	// listed: the answer of the write may be older, and events report the result.
	disturbed bool
}

// Begin records the start of a write or deletion of a policy. End must follow.
func (x *Index) Begin(key types.NamespacedName) *Writing {
	w := &Writing{key: key}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writing[key] = append(x.writing[key], w)
	return w
}

// End records the result of a write: the policy as it is now; nil with deleted set if the policy with that UID is
// gone; neither if the result is unknown.
func (x *Index) End(w *Writing, now *networkingv1.NetworkPolicy, deleted types.UID) {
	var e *Existing
	if now != nil && now.Labels[LabelServiceName] != "" && now.Labels[LabelServiceNamespace] != "" {
		e = existingOf(now)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.writing[w.key] = slices.DeleteFunc(x.writing[w.key], func(other *Writing) bool { return other == w }); len(x.writing[w.key]) == 0 {
		delete(x.writing, w.key)
	}
	switch old := x.policies[w.key]; {
	case e != nil && !w.disturbed && (old == nil || old.UID != e.UID || isOlder(old.ResourceVersion, e.ResourceVersion)):
		// If the event that it comes after was that of a list whose end is still to come, the list has the last word.
		if e.ahead, e.behind = true, old.event(); old == nil {
			e.behind = x.deleted[w.key]
		}
		x.setPolicyLocked(e)
	case deleted != "" && !w.disturbed && old != nil && old.UID == deleted:
		x.removePolicyLocked(w.key)
		if event := old.event(); event != nil {
			x.deleted[w.key] = event
		}
	}
}

// event returns the last event about a policy, without what answers said; nil if there is none.
func (e *Existing) event() *Existing {
	switch {
	case e == nil:
		return nil
	case e.ahead:
		return e.behind
	}
	event := *e
	return &event
}

// Knows reports whether a policy with the labels of a Service is there.
func (x *Index) Knows(key types.NamespacedName) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.policies[key] != nil
}

// isControllers reports whether a policy is one for the ingress controller.
func (e *Existing) isControllers() bool { return strings.HasSuffix(e.Name, fromIngressController) }
