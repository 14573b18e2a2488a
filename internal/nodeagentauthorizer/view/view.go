// Package view has the facts about a shoot by which the requests of its agents are decided: about Machines in the
// source cluster; and about Nodes, Pods, certificate signing requests and the agents' Secrets in the target cluster.
// It stores a few strings of each object, and not the object. An object that was not observed yet is read once,
// before a request is denied because of it. These reads wait in a queue in which agents take turns, so that an agent
// that causes many reads does not delay others.
package view

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/externalapi/kubernetes"
	machinev1alpha1 "github.com/espalier-project/espalier/internal/externalapi/machine/v1alpha1"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/internal/selectors"
)

const kubeSystem = "kube-system"

// SelectorMode decides when selectors of list and watch requests are checked.
type SelectorMode string

// Modes.
const (
	SelectorsNever  SelectorMode = "Never"
	SelectorsAlways SelectorMode = "Always"
	// SelectorsAuto checks selectors if the target's API server sends them.
	SelectorsAuto SelectorMode = "Auto"
)

// Options are the options of a view.
type Options struct {
	// Source has the Machines in MachineNamespace; it is not needed if that is empty.
	Source           cluster.Connection
	MachineNamespace string
	Target           cluster.Connection
	// Bounds limit the memory and the time for the target, if the process serves several shoots. The view of a shoot
	// that exceeds them has no data.
	Bounds    *reflector.Bounds
	Selectors SelectorMode
	// Shoot is the name of the shoot in metrics, empty if there is only one.
	Shoot   string
	Metrics *Metrics
	Clock   clock.Clock
	Log     logr.Logger
}

// View implements the node-agent authorizer's View.
type View struct {
	machineNamespace string
	mode             SelectorMode
	checker          *selectors.Checker
	clients          map[schema.GroupVersion]rest.Interface
	// live are clients without a rate limit of their own, which agents would share.
	live           map[schema.GroupVersion]rest.Interface
	source, target []*reflector.Follower
	// queue shares the live reads between agents.
	queue   *ratelimit.Queue
	shoot   string
	metrics *Metrics
	clock   clock.Clock
	log     logr.Logger
	bounds  *reflector.Bounds
	// over is closed when the shoot exceeds its limits.
	over chan struct{}

	mu sync.RWMutex
	// exceeded is the limit that the shoot exceeds. The view has no facts then.
	exceeded       error
	machines       facts[string, agent.Machine]
	nodes          facts[string, agent.Node]
	pods           facts[podKey, string]
	requests       facts[string, string]
	configurations facts[string, configuration]
	// names are Node names and namespaces, which thousands of Pods share.
	names map[string]string
}

type podKey struct{ namespace, name string }

// configuration has the references of an operating system configuration's Secret, or the error of reading them.
type configuration struct {
	references []agent.Reference
	// pool is the label of such Secrets, and marked is set if they have it. Secrets that are followed have it; a
	// Secret that a Machine names needs none.
	pool   string
	marked bool
	err    error
}

// liveTimeout limits one live read to a fifth of the time that kube-apiserver waits for a decision.
const liveTimeout = 2 * time.Second

// New returns a view that follows nothing yet.
func New(o Options) (*View, error) {
	v := &View{
		machineNamespace: o.MachineNamespace, mode: o.Selectors, log: o.Log,
		clients: map[schema.GroupVersion]rest.Interface{}, live: map[schema.GroupVersion]rest.Interface{},
		queue: ratelimit.NewQueue(cluster.Streams, ratelimit.Waiting), shoot: o.Shoot, metrics: o.Metrics, clock: o.Clock,
		bounds: o.Bounds, over: make(chan struct{}),
	}
	v.forget()
	if o.Bounds != nil {
		o.Bounds.Exceeded = v.exceed
		o.Target.HTTP = o.Bounds.Client(o.Target.HTTP)
	}
	connections := map[schema.GroupVersion]cluster.Connection{kubernetes.Nodes.GroupVersion(): o.Target, kubernetes.CertificateSigningRequests.GroupVersion(): o.Target}
	if v.ByMachine() {
		connections[machinev1alpha1.Machines.GroupVersion()] = o.Source
	}
	for version, connection := range connections {
		client, err := reflector.NewClient(connection.REST, connection.HTTP, version)
		if err != nil {
			return nil, err
		}
		v.clients[version] = client
		unlimited := rest.CopyConfig(connection.REST)
		unlimited.QPS, unlimited.RateLimiter = -1, nil
		if v.live[version], err = reflector.NewClient(unlimited, connection.HTTP, version); err != nil {
			return nil, err
		}
	}
	v.checker = &selectors.Checker{Client: v.clients[kubernetes.Nodes.GroupVersion()], Clock: o.Clock}
	v.follow(o.Clock)
	reflector.Together(v.source, o.Clock)
	reflector.Together(v.target, o.Clock)
	return v, nil
}

// ByMachine reports whether agents are identified by their Machines.
func (v *View) ByMachine() bool { return v.machineNamespace != "" }

// SourceSynced reports whether all objects that existed in the source at the start are known.
func (v *View) SourceSynced() bool { return len(v.SourceAwaited()) == 0 }

// TargetSynced is SourceSynced for the target cluster.
func (v *View) TargetSynced() bool { return len(v.TargetAwaited()) == 0 }

// SourceAwaited returns the names of the source's kinds whose objects are not all known yet.
func (v *View) SourceAwaited() []string { return reflector.Awaited(v.source) }

// TargetAwaited is SourceAwaited for the target cluster.
func (v *View) TargetAwaited() []string { return reflector.Awaited(v.target) }

// Synced reports whether there are data about the shoot (Ready).
func (v *View) Synced() bool { return v.Ready() == nil }

var errNotSynced = errors.New("not synced yet")

// Ready returns the reason why there are no data about the shoot.
func (v *View) Ready() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.exceeded != nil {
		return v.exceeded
	}
	if !v.SourceSynced() || !v.TargetSynced() {
		return errNotSynced
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica answers.
func (v *View) NeedLeaderElection() bool { return false }

// Start follows the clusters until the context ends, or until a pause after the shoot has exceeded its limits.
func (v *View) Start(ctx context.Context) error {
	following, end := context.WithCancel(ctx)
	defer end()
	for _, f := range slices.Concat(v.source, v.target) {
		f.Start(following)
	}
	defer v.metrics.begin(v)()
	select {
	case <-ctx.Done():
		return nil
	case <-v.over:
		end()
	}
	v.log.Error(v.Ready(), "The shoot exceeds its limits: its agents are refused until it has been read anew", "pause", pause.String())
	select {
	case <-ctx.Done():
	case <-v.clock.After(pause):
	}
	return nil
}

// table stores one string of each object of a kind.
type table[T runtime.Object] struct {
	set    func(T)
	remove func(namespace, name string)
	retain func(reflector.Names)
}

func (t table[T]) kind(v *View, name string, resource schema.GroupVersionResource, fresh func() runtime.Object) reflector.Kind {
	return reflector.Kind{
		Name: name, Resource: resource, New: fresh,
		Set: func(object runtime.Object) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if v.exceeded == nil {
				t.set(object.(T))
				v.checkSize(name)
			}
		},
		Remove: func(namespace, name string) {
			v.mu.Lock()
			defer v.mu.Unlock()
			t.remove(namespace, name)
		},
		Retain: func(names reflector.Names) {
			v.mu.Lock()
			defer v.mu.Unlock()
			t.retain(names)
		},
	}
}

func (v *View) follow(c clock.Clock) {
	add := func(to *[]*reflector.Follower, kind reflector.Kind) {
		if to == &v.target {
			kind.Bounds = v.bounds
		}
		kind.First = v.tidy
		kind.Undecodable = func(string, string, error) { v.metrics.bad(kind.Name) }
		*to = append(*to, reflector.New(kind, v.clients[kind.Resource.GroupVersion()], c, v.log))
	}
	if v.ByMachine() {
		kind := table[*machinev1alpha1.Machine]{
			func(m *machinev1alpha1.Machine) { v.machines.set(m.Name, agent.MachineOf(m)) },
			func(_, name string) { v.machines.remove(name) }, retain(&v.machines, v.machineNamespace),
		}.kind(v, "Machine", machinev1alpha1.Machines, func() runtime.Object { return &machinev1alpha1.Machine{} })
		kind.Namespace = v.machineNamespace
		add(&v.source, kind)
	}
	add(&v.target, table[*kubernetes.Node]{
		func(n *kubernetes.Node) {
			now := v.nodeOf(n)
			if before, found := v.nodes.known[n.Name]; found {
				now = now.After(before)
			}
			v.nodes.set(n.Name, now)
		},
		func(_, name string) { v.nodes.remove(name) }, retain(&v.nodes, ""),
	}.kind(v, "Node", kubernetes.Nodes, func() runtime.Object { return &kubernetes.Node{} }))
	add(&v.target, table[*kubernetes.Pod]{
		func(p *kubernetes.Pod) { v.pods.set(podKey{v.same(p.Namespace), p.Name}, v.same(p.Spec.NodeName)) },
		func(namespace, name string) { v.pods.remove(podKey{namespace, name}) },
		func(names reflector.Names) {
			v.pods.retain(func(pod podKey) bool { return names.Has(pod.namespace, pod.name) })
		},
	}.kind(v, "Pod", kubernetes.Pods, func() runtime.Object { return &kubernetes.Pod{} }))
	add(&v.target, table[*kubernetes.CertificateSigningRequest]{
		func(c *kubernetes.CertificateSigningRequest) { v.requests.set(c.Name, v.same(c.Spec.Username)) },
		func(_, name string) { v.requests.remove(name) }, retain(&v.requests, ""),
	}.kind(v, "CertificateSigningRequest", kubernetes.CertificateSigningRequests, func() runtime.Object { return &kubernetes.CertificateSigningRequest{} }))
	kind := table[*kubernetes.Secret]{
		func(s *kubernetes.Secret) { v.configurations.set(s.Name, configurationOf(s)) },
		func(_, name string) { v.configurations.remove(name) }, retain(&v.configurations, kubeSystem),
	}.kind(v, "Secret", kubernetes.Secrets, func() runtime.Object { return &kubernetes.Secret{} })
	kind.Namespace, kind.LabelSelector = kubeSystem, agent.PoolLabel
	add(&v.target, kind)
}

// tidyFrom is the number of Pods from which freeing the memory of the first lists is worthwhile: with fewer it is a
// few megabytes.
const tidyFrom = 5000

// tidy frees the memory that the first lists needed.
func (v *View) tidy() {
	v.mu.RLock()
	many := len(v.pods.known) >= tidyFrom
	v.mu.RUnlock()
	if many && v.Synced() {
		go debug.FreeOSMemory()
	}
}

func configurationOf(s *kubernetes.Secret) configuration {
	references, err := agent.ReferencesOf(s)
	pool, marked := s.Labels[agent.PoolLabel]
	return configuration{references, pool, marked, err}
}

// namesKept limits the stored names, because Nodes and namespaces are created and deleted.
const (
	namesKept = 20_000
	nameKept  = 253
)

// same returns the shared copy of a name.
func (v *View) same(name string) string {
	if len(name) > nameKept {
		return name
	}
	if known, found := v.names[name]; found {
		return known
	}
	if len(v.names) >= namesKept {
		clear(v.names)
	}
	v.names[name] = name
	return name
}

// state describes how much is known about an object.
type state int

const (
	unknown state = iota
	// incomplete means that a part may be missing that was not observed yet, such as the Node of a Machine.
	incomplete
	complete
)

// lookup returns the known facts about an object, or reads it once. If that fails, it returns the known facts.
func lookup[T any, P interface {
	*T
	runtime.Object
}, W any](ctx context.Context, v *View, known func() (W, state), resource schema.GroupVersionResource, namespace, name string, word func(P) W) (W, bool, error) {
	v.mu.RLock()
	w, how := known()
	v.mu.RUnlock()
	if how == complete || name == "" {
		return w, how == complete, nil
	}
	object := P(new(T))
	found, err := v.read(ctx, resource, namespace, name, object)
	switch {
	case err != nil && how == incomplete:
		return w, true, nil
	case err != nil || !found:
		return w, false, err
	}
	return word(object), true, nil
}

// stateOf returns the state of an object that is complete as soon as it exists.
func stateOf(found bool) state {
	if found {
		return complete
	}
	return unknown
}

// stateWith returns the state of an object that is complete as soon as it names a Node.
func stateWith(found bool, node string) state {
	if found && node == "" {
		return incomplete
	}
	return stateOf(found)
}

// read reads an unknown object.
func (v *View) read(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into runtime.Object) (bool, error) {
	if !agent.MayRead(ctx) {
		return false, agent.ErrUnseen
	}
	found, err := v.readShared(ctx, resource, namespace, name, into)
	switch {
	case errors.Is(err, ratelimit.ErrRefused):
		v.metrics.live(outcomeLimited)
	case err != nil:
		v.metrics.live(outcomeError)
	case found:
		v.metrics.live(outcomeFound)
	default:
		v.metrics.live(outcomeAbsent)
	}
	return found, err
}

func (v *View) readShared(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into runtime.Object) (bool, error) {
	err := v.queue.Do(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, liveTimeout)
		defer cancel()
		return reflector.Into(ctx, v.live[resource.GroupVersion()], resource.Resource, namespace, name, into)
	})
	if reflector.IsAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// Machine returns the facts about a Machine. A Machine that has no Node yet is read again: the label may be new.
func (v *View) Machine(ctx context.Context, name string) (agent.Machine, bool, error) {
	return lookup(ctx, v, func() (agent.Machine, state) {
		m, found := v.machines.known[name]
		return m, stateWith(found, m.Node)
	}, machinev1alpha1.Machines, v.machineNamespace, name, agent.MachineOf)
}

// Node returns the facts about a Node.
func (v *View) Node(ctx context.Context, name string) (agent.Node, bool, error) {
	return lookup(ctx, v, func() (agent.Node, state) { n, found := v.nodes.known[name]; return n, stateOf(found) }, kubernetes.Nodes, "", name, v.unseen)
}

// unseen returns the facts about a Node that no watch has delivered. Its agent may have patched it already, so they
// have no host.
func (v *View) unseen(n *kubernetes.Node) agent.Node {
	node := v.nodeOf(n)
	node.Hostname = ""
	return node
}

// nodeOf returns the facts about a Node. If there are Machines, the only fact is that it exists, because an agent may
// write the labels of its Node.
func (v *View) nodeOf(n *kubernetes.Node) agent.Node {
	if v.ByMachine() {
		return agent.Node{}
	}
	return agent.NodeOf(n)
}

// NodeOfPod returns the Node that a Pod is bound to. A Pod without one is read again: it may just have been bound.
func (v *View) NodeOfPod(ctx context.Context, namespace, name string) (string, bool, error) {
	return lookup(ctx, v, func() (string, state) {
		node, found := v.pods.known[podKey{namespace, name}]
		return node, stateWith(found, node)
	}, kubernetes.Pods, namespace, name, func(p *kubernetes.Pod) string { return p.Spec.NodeName })
}

// UserOfCertificateRequest returns the user that made a request.
func (v *View) UserOfCertificateRequest(ctx context.Context, name string) (string, bool, error) {
	return lookup(ctx, v, func() (string, state) { user, found := v.requests.known[name]; return user, stateOf(found) }, kubernetes.CertificateSigningRequests, "", name,
		func(c *kubernetes.CertificateSigningRequest) string { return c.Spec.Username })
}

// Configurations returns the names of the Secrets with configurations of operating systems.
func (v *View) Configurations(context.Context) ([]string, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Sorted(maps.Keys(v.configurations.known)), nil
}

// PoolOf returns the worker pool of a Secret with a configuration of an operating system, even if the Secret was just
// created, and whether it is such a Secret.
func (v *View) PoolOf(ctx context.Context, secret string) (string, bool, error) {
	c, _, err := v.configuration(ctx, secret)
	return c.pool, c.marked, err
}

// References returns the references of a Secret with a configuration of an operating system.
func (v *View) References(ctx context.Context, secret string) ([]agent.Reference, bool, error) {
	c, found, err := v.configuration(ctx, secret)
	if err == nil {
		err = c.err
	}
	return c.references, found, err
}

func (v *View) configuration(ctx context.Context, secret string) (configuration, bool, error) {
	return lookup(ctx, v, func() (configuration, state) { c, found := v.configurations.known[secret]; return c, stateOf(found) }, kubernetes.Secrets, kubeSystem, secret, configurationOf)
}

// Silences returns the time since the last confirmation of each kind.
func (v *View) Silences() map[string]time.Duration {
	silences := map[string]time.Duration{}
	for _, f := range slices.Concat(v.source, v.target) {
		silences[f.Name] = f.Silence()
	}
	return silences
}

// Selectors reports whether selectors are checked. They are checked while this cannot be determined, because that
// allows less.
func (v *View) Selectors(ctx context.Context) (bool, error) {
	if v.mode != SelectorsAuto {
		return v.mode == SelectorsAlways, nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	possible, err := v.checker.Possible(ctx)
	if err != nil {
		v.log.V(1).Info("Whether selectors are sent could not be found out", "reason", err.Error())
		return true, nil
	}
	return possible, nil
}
