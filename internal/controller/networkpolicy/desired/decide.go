package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Decision has the writes and deletions for a request.
type Decision struct {
	// Service is nil if it is unknown.
	Service *Service
	// Write are the policies to create or update, Delete those to delete.
	Write  []*Policy
	Delete []Existing
	// Problems are the policies and annotations that cannot be applied.
	Problems []Problem
	// Long is a label's key that is too long for a request for all policies, and Short its shortened form (NP-23).
	Long, Short string
}

// Decide returns the differences between the wanted and the existing policies.
func (x *Index) Decide(r Request) Decision {
	x.mu.Lock()
	defer x.mu.Unlock()
	// If the namespace of a Service is not watched here, its policies may belong to another instance.
	if !x.isCompleteLocked() || !x.isWatched(r.Service.Namespace) {
		return Decision{}
	}
	s := x.serviceLocked(r.Service)
	d := Decision{Service: s}
	existing := x.existingLocked(r)
	own := x.namespaces[r.Service.Namespace]
	switch {
	case s == nil, s.inactive:
		d.Delete = existing
		return d
	case own == nil:
		return d // The Service exists, so its Namespace exists, too; its event is yet to arrive.
	case !own.handled:
		d.Delete = existing
		return d
	}
	if r.All() {
		d.Problems = append(slices.Clone(s.Problems), x.istio.problems(s.NamespacedName)...)
		d.Long, d.Short = x.shortenedLocked(s)
	}
	w := x.wantedLocked(s)
	// An existing policy may also be wanted for another reason than the request's, and with other contents.
	for _, p := range w.forRequest(r, existing...) {
		if e := x.policies[p.NamespacedName]; e == nil {
			d.Write = append(d.Write, p)
		} else if e.Service != s.NamespacedName {
			d.Problems = append(d.Problems, x.takenLocked(r, p, e))
		} else if e.Digest != p.Digest() && !x.waitsLocked(s, e) {
			d.Write = append(d.Write, p)
		}
	}
	for _, e := range existing {
		if w.find(e.NamespacedName) == nil && !x.staysLocked(s, &e) {
			d.Delete = append(d.Delete, e)
		}
	}
	d.Problems = append(d.Problems, w.clashes...)
	return d
}

// Wanted returns all wanted policies of a Service, by namespace and name.
func (x *Index) Wanted(service types.NamespacedName) []*Policy {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.serviceLocked(service)
	if own := x.namespaces[service.Namespace]; s == nil || s.inactive || own == nil || !own.handled {
		return nil
	}
	return x.wantedLocked(s).forRequest(Request{Service: service})
}

// existingLocked returns the existing policies for a request, each once.
func (x *Index) existingLocked(r Request) []Existing {
	if !r.All() && r.Peer == "" {
		if e := x.policies[r.Policy]; e != nil && e.Service == r.Service {
			return []Existing{*e}
		}
		return nil
	}
	return sorted(x.observed[r.Service].of(r.Peer))
}

func sorted(all []Existing) []Existing {
	slices.SortFunc(all, func(a, b Existing) int { return compareNames(a.NamespacedName, b.NamespacedName) })
	return all
}

func compareNames(a, b types.NamespacedName) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// takenLocked records that a request waits for a name, and returns the problem. Two Services can have the same policy
// name: a/b-c and a-b/c.
func (x *Index) takenLocked(r Request, p *Policy, e *Existing) Problem {
	if x.waiting[p.NamespacedName] == nil {
		x.waiting[p.NamespacedName] = map[Request]bool{}
	}
	x.waiting[p.NamespacedName][r] = true
	return Problem{"NetworkPolicy " + p.String(), fmt.Sprintf("it already exists for Service %s and is not changed", e.Service)}
}

// staysLocked reports whether an unwanted policy is kept: an unreadable annotation may require it, or its namespace
// is ending.
func (x *Index) staysLocked(s *Service, e *Existing) bool {
	if n := x.namespaces[e.Namespace]; n == nil || n.terminating || s.mayStay(e.NamespacedName) {
		return true
	}
	if x.waitsLocked(s, e) {
		return true
	}
	// The policy into the Service stays open while clients are in a terminating namespace, like their policy out of
	// it.
	return e.Namespace == s.Namespace && slices.ContainsFunc(sources(e.Name), func(from string) bool {
		return x.isTerminatingLocked(from) && x.clientsOfLocked(s)[from]
	})
}

// waitsLocked reports whether a policy allows Pods of Gateways while these Pods are not fully known: then the policy
// is kept as it is. This includes a policy that ingress controllers share (NP-12 and NP-17): an update without the
// Gateways would cut these off.
func (x *Index) waitsLocked(s *Service, e *Existing) bool {
	return e.gate && strings.Contains(e.Name, from) && !e.isControllers() && !x.isIstioKnownLocked(s.NamespacedName)
}

// shortenedLocked returns the first label key of the Service that is too long.
func (x *Index) shortenedLocked(s *Service) (long, short string) {
	if long, short = s.shortened(s.Namespace); long != "" {
		return long, short
	}
	// Keys differ only between the Service's namespace and other namespaces.
	for other := range x.clientsOfLocked(s) {
		if other != s.Namespace {
			return s.shortened(other)
		}
	}
	return "", ""
}

// wanted computes the policies of one Service, each unit once.
type wanted struct {
	x       *Index
	s       *Service
	units   map[string]map[types.NamespacedName]*Policy
	clashes []Problem
}

func (x *Index) wantedLocked(s *Service) *wanted {
	return &wanted{x: x, s: s, units: map[string]map[types.NamespacedName]*Policy{}}
}

// unit returns the policies of a Service that concern one namespace.
func (w *wanted) unit(peer string) map[types.NamespacedName]*Policy {
	if unit, done := w.units[peer]; done {
		return unit
	}
	unit := map[types.NamespacedName]*Policy{}
	w.units[peer] = unit
	for _, p := range w.x.policiesLocked(w.s, peer) {
		present := unit[p.NamespacedName]
		if present == nil {
			unit[p.NamespacedName] = p
		} else if !present.merge(p) {
			w.clash(p)
		}
	}
	return unit
}

// find returns the wanted policy of a name, merged from all units, or nil.
func (w *wanted) find(key types.NamespacedName) *Policy {
	if !w.x.isWritableLocked(key.Namespace) {
		return nil
	}
	var found *Policy
	for _, peer := range w.s.units(key) {
		p := w.unit(peer)[key]
		switch {
		case p == nil:
		case found == nil:
			found = p
		default:
			both := *found
			both.Spec = *found.Spec.DeepCopy()
			if both.merge(p) {
				found = &both
			} else {
				w.clash(p)
			}
		}
	}
	return found
}

func (w *wanted) clash(p *Policy) {
	w.clashes = append(w.clashes, Problem{"NetworkPolicy " + p.String(), "two reasons for it have the same name and different Pods; the first one counts"})
}

// forRequest returns the wanted policies for a request, and those with the names of some existing policies, sorted.
func (w *wanted) forRequest(r Request, existing ...Existing) []*Policy {
	if !r.All() && r.Peer == "" {
		if p := w.find(r.Policy); p != nil {
			return []*Policy{p}
		}
		return nil
	}
	keys := map[types.NamespacedName]bool{}
	for i := range existing {
		keys[existing[i].NamespacedName] = true
	}
	peers := []string{r.Peer}
	if r.Peer == "" {
		peers = append(slices.Collect(maps.Keys(w.x.clientsOfLocked(w.s))), w.s.Namespace)
	}
	for _, peer := range peers {
		for key := range w.unit(peer) {
			keys[key] = true
		}
	}
	var all []*Policy
	for key := range keys {
		if p := w.find(key); p != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *Policy) int { return compareNames(a.NamespacedName, b.NamespacedName) })
	return all
}

// policiesLocked returns the policies of a Service that concern one namespace, before policies of the same name are
// merged.
func (x *Index) policiesLocked(s *Service, peer string) []*Policy {
	if !x.isOpenLocked(s.Namespace) || !x.isOpenLocked(peer) || peer != s.Namespace && !x.clientsOfLocked(s)[peer] {
		return nil
	}
	var has func(string) bool
	if x.options.OnlyForExistingPods {
		has = func(key string) bool { return x.pods.has(peer, key) }
	}
	format := x.options.Descriptions
	all := s.labelled(peer, has, format)
	if peer != s.Namespace {
		return all
	}
	if s.isWorld {
		all = append(all, s.allowWorld(s.world, format))
	}
	if c := x.options.IngressController; c != nil {
		all = append(all, s.controllerPolicies(x.ingressBackendsLocked(s.NamespacedName), c, format)...)
	}
	return append(all, s.gatePolicies(x.istio.routes(s.NamespacedName), format)...)
}
