package desired

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// labelled returns the policies of a Service for clients in a namespace that have its labels (NP-11 … NP-14, NP-26: a
// pair for each port and each port of an alias). has reports whether a Pod there has a label; nil means that it does
// not matter (NP-30).
func (s *Service) labelled(namespace string, has func(key string) bool, format DescriptionFormat) []*Policy {
	var all []*Policy
	s.eachLabel(namespace, func(key, as string, t target) {
		key = ShortKey(key)
		if has != nil && !has(key) {
			return
		}
		id := s.Name + "-" + t.id()
		if as != "" {
			as = via + as
		}
		ingress, egress := ingressTo+id+as, egressTo+id+as
		if namespace != s.Namespace {
			ingress, egress = ingress+from+namespace, egressTo+s.Namespace+"-"+id+as
		}
		clients := peers{namespace: namespace, selector: metav1.LabelSelector{MatchLabels: map[string]string{key: Allowed}}}
		all = append(all, s.allowIngress(ingress, t, clients, format), s.allowEgress(egress, t, clients, format))
	})
	return all
}

// eachLabel calls do for each target with the key of its label, before it is shortened (NP-19), and with the name of
// the alias, if any.
func (s *Service) eachLabel(namespace string, do func(key, as string, t target)) {
	infix := ""
	if namespace != s.Namespace {
		infix = s.Namespace + "-"
		if s.namespaceAlias != "" {
			infix = s.namespaceAlias + "-"
		}
	}
	for _, t := range s.targets {
		do(toPrefix+infix+s.Name+"-"+t.id(), "", t)
	}
	for _, a := range s.aliases {
		for _, t := range a.targets {
			do(toPrefix+infix+a.name, a.name, t)
		}
	}
}

// asks reports whether Pods in a namespace use a label for the Service.
func (s *Service) asks(namespace string, keys []string) bool {
	found := false
	s.eachLabel(namespace, func(key, _ string, _ target) { found = found || slices.Contains(keys, ShortKey(key)) })
	return found
}

// shortened returns the first label key that is too long, in its long and short form (NP-23).
func (s *Service) shortened(namespace string) (long, short string) {
	s.eachLabel(namespace, func(key, _ string, _ target) {
		if effective := ShortKey(key); effective != key && long == "" {
			long, short = key, effective
		}
	})
	return long, short
}

// units returns the namespaces whose units may contain a policy of that name: the Service's, the policy's, and those
// that the ending of a name in the Service's namespace may mean.
func (s *Service) units(policy types.NamespacedName) []string {
	if policy.Namespace != s.Namespace {
		return []string{s.Namespace, policy.Namespace}
	}
	return append([]string{s.Namespace}, sources(policy.Name)...)
}

// peersOf returns the namespaces of clients that a policy of a Service may be for: the policy's namespace; or, in the
// Service's own namespace, the one at the end of the name, and the Service's own if the name is ambiguous. A request
// for one peer deletes unwanted policies only among these.
func peersOf(service, policy types.NamespacedName) []string {
	if policy.Namespace != service.Namespace {
		return []string{policy.Namespace}
	}
	others := sources(policy.Name)
	if len(others) > 0 && !mayBeOwn(service.Name, policy.Name) {
		return others
	}
	return append([]string{policy.Namespace}, others...)
}

// portLimit limits the length of a port's name.
const portLimit = 15

// mayBeOwn reports whether a policy of a Service may be for clients in the Service's own namespace although its name
// has "-from-" in it: names of Services, ports and aliases may have that, too (logs-from-nodes), as do the policies
// for everyone, for ingress controllers and for Gateways.
func mayBeOwn(service, policy string) bool {
	rest, isIngress := strings.CutPrefix(policy, ingressTo+service+"-")
	if !isIngress || strings.Contains(rest, via) {
		return true // Policies that exist for traffic out of Pods are for clients of this namespace.
	}
	for _, ending := range []string{fromWorld, fromIngressController, fromIstio} {
		if strings.HasSuffix(rest, ending) {
			return true
		}
	}
	_, port, _ := strings.Cut(rest, "-") // The protocol precedes it.
	return len(port) <= portLimit
}

// mayStay reports whether a policy may exist because of annotations that cannot be decoded.
func (s *Service) mayStay(policy types.NamespacedName) bool {
	if s.unread.world && policy.Namespace == s.Namespace && policy.Name == s.worldName() {
		return true
	}
	if s.unread.clients && (policy.Namespace != s.Namespace || len(sources(policy.Name)) > 0 && policy.Name != s.worldName()) {
		return true
	}
	return slices.ContainsFunc(s.unread.aliases, func(name string) bool {
		return strings.HasSuffix(policy.Name, via+name) || strings.Contains(policy.Name, via+name+from)
	})
}
