package desired

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// server is an API server whose watch is behind, and whose answers may be late or lost.
type server struct {
	policies map[types.NamespacedName]*networkingv1.NetworkPolicy
	version  int
	uids     int
	// events are those that the index was not told of yet; nil objects are deletions.
	events []serverEvent
}

type serverEvent struct {
	key    types.NamespacedName
	object *networkingv1.NetworkPolicy
}

func (s *server) store(o *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	o = o.DeepCopy()
	s.version++
	o.ResourceVersion = strconv.Itoa(s.version)
	if o.UID == "" {
		s.uids++
		o.UID = types.UID("uid-" + strconv.Itoa(s.uids))
	}
	k := key(o.Namespace, o.Name)
	s.policies[k] = o
	s.events = append(s.events, serverEvent{k, o})
	return o
}

func (s *server) remove(k types.NamespacedName) {
	delete(s.policies, k)
	s.version++
	s.events = append(s.events, serverEvent{k, nil})
}

// run is an index, the server, and what is under way between them.
type run struct {
	t       *rapid.T
	options Options
	index   *Index
	server  *server
	// pending and working are what a queue has: a request that is worked on is not begun a second time.
	pending, working map[Request]bool
	answers          []answer
	namespaces       map[string]bool
	ports            []string
}

// answer is one that did not arrive yet.
type answer struct {
	request Request
	writing *Writing
	now     *networkingv1.NetworkPolicy
	deleted types.UID
}

func (r *run) ask(requests []Request) {
	for _, request := range requests {
		r.pending[request] = true
	}
}

// work begins with a request that is pending, if there is one: its writes reach the server now, and their answers come when they come.
func (r *run) work(request Request) {
	delete(r.pending, request)
	d := r.index.Decide(request)
	if len(d.Write)+len(d.Delete) == 0 {
		return
	}
	r.working[request] = true
	for _, p := range d.Write {
		a := answer{request: request, writing: r.index.Begin(p.NamespacedName)}
		present := r.server.policies[p.NamespacedName]
		switch {
		case present == nil:
			a.now = r.server.store(p.Object())
		case DigestOf(present) == p.Digest():
			a.now = present
		default:
			changed := present.DeepCopy()
			p.Apply(changed)
			a.now = r.server.store(changed)
		}
		r.answers = append(r.answers, a)
	}
	for _, e := range d.Delete {
		a := answer{request: request, writing: r.index.Begin(e.NamespacedName)}
		present := r.server.policies[e.NamespacedName]
		if present != nil && present.UID == e.UID && present.ResourceVersion == e.ResourceVersion {
			r.server.remove(e.NamespacedName)
			a.deleted = e.UID
		} else if present == nil {
			a.deleted = e.UID
		}
		r.answers = append(r.answers, a)
	}
}

// answer lets an answer arrive, or tells that it is lost. With its last one a request is looked at again.
func (r *run) answer(i int, lost bool) {
	a := r.answers[i]
	r.answers = slices.Delete(r.answers, i, i+1)
	if lost {
		a.now, a.deleted = nil, ""
	}
	r.index.End(a.writing, a.now, a.deleted)
	if !slices.ContainsFunc(r.answers, func(other answer) bool { return other.request == a.request }) {
		delete(r.working, a.request)
		r.pending[a.request] = true
	}
}

func (r *run) tell() {
	e := r.server.events[0]
	r.server.events = r.server.events[1:]
	if e.object == nil {
		r.ask(r.index.Remove(Policies, e.key.Namespace, e.key.Name))
		return
	}
	r.ask(r.index.SetPolicy(e.object))
}

// list reports all that there is, as a watch does that had to begin anew. Answers may arrive before its end.
func (r *run) list() {
	r.server.events = nil
	for _, k := range slices.SortedFunc(maps.Keys(r.server.policies), compareNames) {
		r.ask(r.index.SetPolicy(r.server.policies[k]))
	}
	for len(r.answers) > 0 && rapid.Bool().Draw(r.t, "an answer before the end of the list") {
		r.answer(rapid.IntRange(0, len(r.answers)-1).Draw(r.t, "answer"), false)
	}
	there := maps.Clone(r.server.policies)
	r.ask(r.index.Retain(Policies, "", func(namespace, name string) bool { return there[key(namespace, name)] != nil }))
}

// current is the Service as it is now, and object a namespace.
func (r *run) current() *corev1.Service {
	return service("a", "s", r.ports, "namespace-selectors", `[{"matchLabels":{"x":"1"}}]`)
}

func (r *run) object(name string) *corev1.Namespace {
	if r.namespaces[name] {
		return namespaceObject(name, "x=1")
	}
	return namespaceObject(name)
}

func (r *run) restart() {
	r.index, r.answers, r.pending, r.working = NewIndex(r.options), nil, map[Request]bool{}, map[Request]bool{}
	for name := range r.namespaces {
		r.index.SetNamespace(r.object(name))
	}
	r.index.SetService(r.current())
	r.list()
	clear(r.pending)
	for _, kind := range []Kind{Namespaces, Services, Policies, VirtualServices, Gateways} {
		r.ask(r.index.Complete(kind))
	}
}

// Property: whatever order events, answers, losses, lists, restores of etcd and restarts come in, the policies are in the end what is wanted
// (NP-8, NP-9, NP-42).
func TestPropertyAnswersAndEventsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{t: rt, server: &server{policies: map[types.NamespacedName]*networkingv1.NetworkPolicy{}}, namespaces: map[string]bool{"a": true, "b": true}, ports: []string{"1:1"}}
		r.restart()
		saved, savedVersion := maps.Clone(r.server.policies), r.server.version
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			switch step := rapid.IntRange(0, 15).Draw(rt, "step"); {
			case step < 4:
				r.workAny()
			case step < 8 && len(r.answers) > 0:
				r.answer(rapid.IntRange(0, len(r.answers)-1).Draw(rt, "answer"), rapid.IntRange(0, 4).Draw(rt, "lost") == 0)
			case step < 11 && len(r.server.events) > 0:
				r.tell()
			case step == 11:
				r.ports = rapid.SampledFrom([][]string{{"1:1"}, {"2:2"}, {"1:1", "2:2"}, nil}).Draw(rt, "ports")
				r.ask(r.index.SetService(r.current()))
			case step == 12:
				r.namespaces["b"] = !r.namespaces["b"]
				r.ask(r.index.SetNamespace(r.object("b")))
			case step == 13:
				r.byHand()
			case step == 14:
				switch rapid.IntRange(0, 3).Draw(rt, "disaster") {
				case 0:
					r.list()
				case 1:
					r.restart()
				case 2:
					saved, savedVersion = maps.Clone(r.server.policies), r.server.version
				case 3:
					r.server.policies, r.server.version = maps.Clone(saved), savedVersion
					r.list()
				}
			}
		}
		for n := 0; len(r.answers)+len(r.server.events)+len(r.pending) > 0; n++ {
			switch {
			case n > 2000:
				rt.Fatalf("no end: %v", r.pending)
			case len(r.server.events) > 0:
				r.tell()
			case len(r.answers) > 0:
				r.answer(0, false)
			default:
				r.workAny()
			}
		}
		wanted := r.index.Wanted(key("a", "s"))
		for _, p := range wanted {
			if got := r.server.policies[p.NamespacedName]; got == nil || DigestOf(got) != p.Digest() {
				rt.Fatalf("%s is not as it should be: %v", p, got)
			}
		}
		if len(wanted) != len(r.server.policies) {
			rt.Fatalf("%d are wanted, and there are %v", len(wanted), slices.Collect(maps.Keys(r.server.policies)))
		}
	})
}

func (r *run) workAny() {
	var free []Request
	for request := range r.pending {
		if !r.working[request] {
			free = append(free, request)
		}
	}
	if len(free) == 0 {
		return
	}
	slices.SortFunc(free, func(a, b Request) int {
		return compareNames(key(a.Peer, a.Policy.String()), key(b.Peer, b.Policy.String()))
	})
	r.work(free[rapid.IntRange(0, len(free)-1).Draw(r.t, "request")])
}

// byHand deletes or changes a policy, or takes its labels away, of which a watch with a selector says that it is gone.
func (r *run) byHand() {
	names := slices.SortedFunc(maps.Keys(r.server.policies), compareNames)
	if len(names) == 0 {
		return
	}
	k := rapid.SampledFrom(names).Draw(r.t, "policy")
	if rapid.Bool().Draw(r.t, "deleted") {
		r.server.remove(k)
		return
	}
	o := r.server.policies[k].DeepCopy()
	o.Spec.Egress, o.Spec.Ingress = nil, nil
	r.server.store(o)
}
