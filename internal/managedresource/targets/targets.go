package targets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/controller"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/internal/managedresource/turns"
)

// Options are all that Targets need; each is required, unless it says otherwise.
type Options struct {
	// Config has targets, and what is the same for all of them.
	Config *config.ResourceManagerConfiguration
	// Manager has the cache of the source and its clients, whose requests go through Fair.
	Manager manager.Manager
	// Source is the client of the source for built-in kinds, likewise.
	Source kubernetes.Interface
	// Load reads the kubeconfig of a target. It refuses what makes the process read files or run programs.
	Load func([]byte) (*rest.Config, error)
	// Dial returns what sends requests to a target; nil for connections of its own.
	Dial func(*rest.Config) (*Connections, error)
	// Identified, if it is set, is called once the identity of the source is known.
	Identified func()
	// Tidy, if it is set, gives memory back that is not in use. It is called when no target has begun for a while.
	Tidy     func()
	Clock    clock.WithTicker
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Targets look after the targets of one process. They run on the leader.
type Targets struct {
	Options
	Secrets  *source.Secrets
	Turns    *turns.Turns
	Metrics  *controller.Metrics
	Requests *target.Metrics

	metrics  *Metrics
	bodies   *bodies
	feed     *feed
	notes    *kit.Notes
	identity string
	started  atomic.Pointer[error]
	// sharing divides the targets between this process and others; nil if this process has all targets.
	sharing *membership
	// begun is that a target has begun.
	begun chan struct{}

	mu      sync.Mutex
	members map[string]*member
	uids    map[string]types.UID
	running sync.WaitGroup
}

// New returns targets that Start manages. It sends no requests.
func New(o Options) *Targets {
	if o.Dial == nil {
		o.Dial = dial
	}
	t := &Targets{
		Options: o, Metrics: controller.NewMetrics(o.Registry), Requests: target.NewMetrics(o.Registry), metrics: NewMetrics(o.Registry), feed: newFeed(),
		Secrets: source.NewSecrets(o.Source.CoreV1(), nil, o.Clock, o.Log.WithName("secrets")),
		notes:   kit.NewNotes(o.Manager.GetClient(), o.Clock, "gardener-resource-manager"),
		members: map[string]*member{}, uids: map[string]types.UID{}, begun: make(chan struct{}, 1),
		Turns: engine.NewTurns(engine.Options{Config: o.Config, Source: o.Source, Clock: o.Clock, Registry: o.Registry, Log: o.Log}),
	}
	if o.Config.Sharded() {
		t.sharing = newMembership(t)
	}
	t.bodies = newBodies(o.Config.Targets.Limits.TotalBytesInFlight.Value(), t.metrics.exceeded.Inc)
	return t
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (t *Targets) NeedLeaderElection() bool { return true }

// Ready returns what the start waits for, or what is in the way of news from the source; nil where there is no leader. No target is waited for.
func (t *Targets) Ready() error {
	if waiting := t.started.Load(); waiting != nil && *waiting != nil {
		return *waiting
	}
	return t.Secrets.Watching()
}

// Start looks after the targets until the context ends.
func (t *Targets) Start(ctx context.Context) error {
	return kit.Run(ctx, t.Manager, t.start)
}

func (t *Targets) start(group *kit.Group) error {
	ctx := group.Context()
	defer t.sharing.leave(ctx)
	defer t.running.Wait()
	if err := t.identifySource(ctx); err != nil {
		return err
	}
	if err := t.followManagedResources(ctx); err != nil {
		return err
	}
	if t.Turns != nil {
		if err := group.Add(manager.RunnableFunc(t.Turns.Start)); err != nil {
			return err
		}
	}
	t.Secrets.Subscribe(t.secretChanged, t.secretsMissed)
	if err := group.Add(manager.RunnableFunc(t.Secrets.Start)); err != nil {
		return err
	}
	if err := t.Secrets.WaitUntilWatching(ctx, t.Config.Controllers.CacheSyncTimeout.Duration); err != nil {
		return err
	}
	t.running.Go(func() { t.tidy(ctx) })
	follow := t.followNamespaces
	if t.Config.Targets.Directory != "" {
		follow = t.followDirectory
	}
	return follow(ctx, func() error { return t.join(ctx, group) })
}

// join has the process share targets with others, if it is to, and ready.
func (t *Targets) join(ctx context.Context, group *kit.Group) error {
	if t.sharing != nil {
		t.waits(errJoining)
		if err := t.sharing.join(ctx); err != nil {
			return err
		}
		if err := group.Add(manager.RunnableFunc(t.sharing.run)); err != nil {
			return err
		}
	}
	t.waits(nil)
	return nil
}

// identifySource requests the identity of the source until the source answers. An answer without a usable identity ends the process.
func (t *Targets) identifySource(ctx context.Context) error {
	identity, err := engine.Identify(ctx, engine.Options{Config: t.Config, Manager: t.Manager, Source: t.Source, Clock: t.Clock, Log: t.Log}, t.waits)
	if err != nil {
		return fmt.Errorf("failed during bootstrapping: %w", err)
	}
	t.identity = identity
	t.Log.Info("Using cluster id", "clusterID", identity)
	if t.Identified != nil {
		t.Identified()
	}
	return nil
}

// waits notes what the start waits for; nil for nothing.
func (t *Targets) waits(err error) { t.started.Store(&err) }

// followManagedResources subscribes the feed to all ManagedResources, and waits until the feed knows all of them.
func (t *Targets) followManagedResources(ctx context.Context) error {
	informer, err := t.Manager.GetCache().GetInformer(ctx, &resourcesv1alpha1.ManagedResource{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(t.feed)
	if err != nil {
		return err
	}
	if t.Turns != nil {
		if err := t.Turns.Follow(informer); err != nil {
			return err
		}
	}
	t.waits(errWaiting)
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// Reasons why the start is not over.
var (
	errWaiting = errors.New("waiting for the ManagedResources of the source cluster")
	errJoining = errors.New("waiting for the lease by which the process shares targets with others")
)

// add starts to manage a target, unless another process owns it; a target that is managed already stays as it is.
func (t *Targets) add(ctx context.Context, name, namespace string, uid types.UID, resolve resolver) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.members[name] != nil {
		t.uids[name] = uid
		return
	}
	if !t.sharing.owns(name) {
		return
	}
	t.uids[name] = uid
	own, stop := context.WithCancel(ctx)
	m := &member{
		Targets: t, name: name, namespace: namespace, resolve: resolve, log: t.Log.WithValues("target", name),
		news: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
	}
	t.members[name] = m
	t.running.Go(func() { m.run(own) })
}

// remove stops the work for a target. The target cannot be added again until the work has ended; remove then calls removed, unless the target was already
// being removed.
func (t *Targets) remove(name string, removed func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.members[name]
	if m == nil || m.leaving {
		return
	}
	m.leaving = true
	m.log.Info("The target is not managed any more")
	m.stop()
	t.running.Go(func() {
		<-m.done
		t.Metrics.Forget(m.namespace)
		t.mu.Lock()
		delete(t.members, name)
		delete(t.uids, name)
		t.mu.Unlock()
		removed()
		t.sharing.notify()
	})
}

// tidyAfter is for how long no target must have begun before memory is given back: a thousand targets are verified within that time.
const tidyAfter = time.Minute

// tidy has memory given back after starts, until the context ends. A start takes several times the memory that its targets need from then on, and
// a process with nothing to do would keep most of it: the garbage collector frees memory while there is more garbage, and there is none.
func (t *Targets) tidy(ctx context.Context) {
	if t.Tidy == nil {
		return
	}
	timer := t.Clock.NewTimer(tidyAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.begun:
			timer.Reset(tidyAfter)
		case <-timer.C():
			t.Tidy()
		}
	}
}

// names returns the targets that are managed, and the targets that are being removed.
func (t *Targets) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.members))
}

// uid is that of the namespace of a target, as far as it is known.
func (m *member) uid() types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.uids[m.name]
}

// secretChanged is called when a Secret was written or deleted.
func (t *Targets) secretChanged(key types.NamespacedName, _ string) {
	c := t.Config.Targets
	if !slices.ContainsFunc([]*config.SecretKey{c.Kubeconfig, c.CA, c.Token, c.Overrides}, func(named *config.SecretKey) bool {
		return named != nil && named.SecretName == key.Name
	}) {
		return
	}
	t.mu.Lock()
	m := t.members[key.Namespace]
	t.mu.Unlock()
	if m != nil {
		m.notify()
	}
}

// secretsMissed takes that changes of Secrets may have been missed.
func (t *Targets) secretsMissed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.members {
		m.notify()
	}
}

// leaseHolder returns the holder of the Lease that a target waits for; empty if the Lease has no holder.
func (t *Targets) leaseHolder(ctx context.Context, namespace string) (string, error) {
	name := ptr.Deref(t.Config.Targets.AwaitLease, "")
	if name == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	lease, err := t.Source.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading lease %s/%s: %w", namespace, name, err)
	}
	if lease.Namespace == t.Config.LeaderElection.ResourceNamespace && lease.Name == t.Config.LeaderElection.ResourceName || t.expired(lease) {
		return "", nil
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// expired says whether a Lease has not been renewed for its duration.
func (t *Targets) expired(lease *coordinationv1.Lease) bool {
	if lease.Spec.RenewTime == nil {
		return true
	}
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return t.Clock.Now().After(lease.Spec.RenewTime.Add(lasts))
}

var _ manager.LeaderElectionRunnable = &Targets{}

// namespaceKind is what targets are found by.
var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
