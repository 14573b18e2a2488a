package targets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/targets/sharding"
)

// membership is the Lease that makes one of several processes that share targets known to the others.
//
//	every retryPeriod                              the process renews its Lease: one write, however many targets there are
//	another process comes, goes, or claims others  the process reads all Leases, and publishes its claim in its own (package sharding)
//	a Lease is not renewed for leaseDuration       another process deletes it, and its targets are those of others
//
// Invariants:
//   - A process that has not renewed for renewDeadline ends, before others delete its Lease. Its requests fail once the Lease has expired: a process that
//     stood still finds its clock advanced before it sends anything.
//   - A Lease that is deleted is never renewed: the process that held it ends.
//   - All reads of Leases are of the latest state, and no two steps of the loop overlap.
type membership struct {
	leases   coordinationv1client.LeaseInterface
	election *shared.LeaderElection
	name     string
	identity string
	clock    clock.WithTicker
	log      logr.Logger
	members  prometheus.Gauge
	// running says which targets the process looks after or is ending, and changed is called when it may own others.
	running func() []string
	changed func()
	// news is that another process, or a target of this one, has changed.
	news chan struct{}

	// lease is the own one as it was written last, and seen are those of others; the loop alone has them.
	lease *coordinationv1.Lease
	seen  map[string]sighting

	mu    sync.Mutex
	share *sharding.Share
	// renewed is when the last renewal that succeeded was sent.
	renewed time.Time
}

const (
	// labelSharding is on the Leases of processes that share targets; its value is leaderElection.resourceName, the same for all of them.
	labelSharding = "resources.gardener.cloud/shared-targets"
	// annotationClaim is what a process has published of who owns which target: the names of the Leases that it counts, separated by commas.
	annotationClaim = "resources.gardener.cloud/shared-targets-claim"
)

// newMembership returns one that has no Lease yet.
func newMembership(t *Targets) *membership {
	name, unique := t.Config.LeaderElection.ResourceName, string(uuid.NewUUID())
	host, err := os.Hostname()
	if err != nil {
		host = name
	}
	own := name + "-" + unique[:8]
	return &membership{
		leases: t.Source.CoordinationV1().Leases(t.Config.LeaderElection.ResourceNamespace), election: &t.Config.LeaderElection, name: own,
		identity: host + "_" + unique, clock: t.Clock, log: t.Log.WithName("sharding"), members: t.metrics.members, running: t.names,
		news: make(chan struct{}, 1), seen: map[string]sighting{}, share: sharding.New(own),
	}
}

// sighting is a version of a Lease, and since when it is the latest one.
type sighting struct {
	version string
	since   time.Time
}

// errLost is about a process whose Lease is not renewed any more.
var errLost = errors.New("lost the lease by which the process shares targets with others")

// leave gives the Lease back, once nothing is done for any target.
func (m *membership) leave(ctx context.Context) {
	if m == nil || m.lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.election.RetryPeriod.Duration)
	defer cancel()
	if err := m.leases.Delete(ctx, m.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.lease.UID}}); err != nil && !apierrors.IsNotFound(err) {
		m.log.Error(err, "The lease cannot be given back; others wait until it expires", "lease", m.name)
	}
}

// owns says whether the process may begin a target; a process that does not share its targets owns all.
func (m *membership) owns(target string) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.share.Owns(target)
}

// keeps says whether a target that the process manages may stay with it.
func (m *membership) keeps(target string) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.share.Keeps(target)
}

// expired returns an error once others may look after the targets.
func (m *membership) expired() error {
	if m == nil || m.left(m.election.LeaseDuration.Duration) > 0 {
		return nil
	}
	return errLost
}

// left is the time until a duration after the last renewal.
func (m *membership) left(d time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return d - m.clock.Since(m.renewed)
}

// notify has the loop look at the Leases.
func (m *membership) notify() {
	if m == nil {
		return
	}
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// limited returns a context for one request, which ends with the time in which a renewal must succeed, or with a third of it: an answer that does not come must
// not hold the next renewal up.
func (m *membership) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := m.election.RenewDeadline.Duration
	return context.WithTimeout(ctx, min(max(m.left(deadline), 0), deadline/3))
}

// join creates the Lease, as soon as the source lets it.
func (m *membership) join(ctx context.Context) error {
	for {
		sent := m.clock.Now()
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{labelSharding: m.election.ResourceName}}}
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &m.identity, LeaseDurationSeconds: ptr.To(int32(m.election.LeaseDuration.Seconds())), AcquireTime: &metav1.MicroTime{Time: sent}, RenewTime: &metav1.MicroTime{Time: sent},
		}
		limited, cancel := context.WithTimeout(ctx, m.election.RenewDeadline.Duration/3)
		created, err := m.leases.Create(limited, lease, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // The answer to an earlier attempt was lost: the name is this process's alone.
			created, err = m.reread(limited)
		}
		cancel()
		if err == nil {
			m.lease = created
			m.mu.Lock()
			m.renewed = sent
			m.mu.Unlock()
			return nil
		}
		m.log.Error(err, "The lease cannot be created", "lease", m.name)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.clock.After(m.election.RetryPeriod.Duration):
		}
	}
}

// run keeps the process among those that share targets, until the context ends. An error means that it must end all its work at once.
func (m *membership) run(ctx context.Context) error {
	go m.follow(ctx)
	m.notify()
	renewal := m.clock.NewTicker(m.election.RetryPeriod.Duration)
	defer renewal.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return nil
		case <-renewal.C():
			due = true
		case <-m.news:
		case <-m.clock.After(m.left(m.election.RenewDeadline.Duration)):
		}
		if due {
			if _, err := m.write(ctx, nil); err != nil {
				return err
			}
		}
		for again := true; again; {
			claim, err := m.look(ctx)
			if err != nil {
				return err
			}
			if again = claim != nil && m.ended(); again {
				if again, err = m.write(ctx, claim); err != nil {
					return err
				}
			}
		}
		if ctx.Err() == nil && m.left(m.election.RenewDeadline.Duration) <= 0 {
			return errLost
		}
	}
}

// ended says whether nothing runs any more that the process does not keep.
func (m *membership) ended() bool {
	for _, target := range m.running() {
		if !m.keeps(target) {
			return false
		}
	}
	return true
}

// look reads all Leases, deletes those that have expired, and returns the claim to publish, if there is one. An error means that the own Lease is gone.
func (m *membership) look(ctx context.Context) ([]string, error) {
	limited, cancel := m.limited(ctx)
	defer cancel()
	list, err := m.list(limited)
	if err != nil {
		m.log.V(1).Info("The leases of processes that share targets cannot be read", "error", err.Error())
		return nil, nil
	}
	claims, seen := map[string][]string{}, map[string]sighting{}
	for i := range list.Items {
		lease := &list.Items[i]
		if lease.Name != m.name && m.gone(limited, lease, seen) {
			continue
		}
		claims[lease.Name] = nil
		if claim := lease.Annotations[annotationClaim]; claim != "" {
			claims[lease.Name] = strings.Split(claim, ",")
		}
	}
	m.seen = seen
	if _, found := claims[m.name]; !found {
		return nil, fmt.Errorf("%w: somebody deleted it", errLost)
	}
	m.members.Set(float64(len(claims)))
	m.mu.Lock()
	claim, news := m.share.Observe(claims)
	m.mu.Unlock()
	if news {
		m.changed()
	}
	return claim, nil
}

// gone says whether the Lease of another process has expired, and is deleted. Its clock is not compared: what counts is for how long this process has seen no
// renewal.
func (m *membership) gone(ctx context.Context, lease *coordinationv1.Lease, seen map[string]sighting) bool {
	now := m.clock.Now()
	last, known := m.seen[lease.Name]
	if !known || last.version != lease.ResourceVersion {
		last = sighting{lease.ResourceVersion, now}
	}
	seen[lease.Name] = last
	lasts := max(m.election.LeaseDuration.Duration, time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second)
	if now.Sub(last.since) <= lasts {
		return false
	}
	preconditions := &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}
	if err := m.leases.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: preconditions}); err != nil && !apierrors.IsNotFound(err) {
		m.log.V(1).Info("The expired lease of another process cannot be deleted", "lease", lease.Name, "error", err.Error())
		return false
	}
	m.log.Info("The lease of another process has expired; its targets are those of others now", "lease", lease.Name)
	delete(seen, lease.Name)
	return true
}

// write renews the Lease, and publishes a claim if one is given; it says whether an answer says so. An error means that the Lease is gone; any other
// failure is retried with the next renewal.
func (m *membership) write(ctx context.Context, claim []string) (bool, error) {
	limited, cancel := m.limited(ctx)
	defer cancel()
	lease := m.lease.DeepCopy()
	sent := m.clock.Now()
	lease.Spec.RenewTime = &metav1.MicroTime{Time: sent}
	if claim != nil {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, annotationClaim, strings.Join(claim, ","))
		m.mu.Lock()
		m.share.Attempt(claim)
		m.mu.Unlock()
	}
	written, err := m.leases.Update(limited, lease, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		// The answer to an earlier write was lost. That write was as this process meant it, so that its version is all that is missing.
		if written, err = m.reread(limited); err == nil {
			lease.ResourceVersion = written.ResourceVersion
			if claim == nil {
				lease.Annotations = written.Annotations
			}
			written, err = m.leases.Update(limited, lease, metav1.UpdateOptions{})
		}
	}
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, errLost):
		return false, fmt.Errorf("%w: %w", errLost, err)
	case err != nil:
		m.log.V(1).Info("The lease cannot be renewed", "lease", m.name, "error", err.Error())
		return false, nil
	}
	m.lease = written
	m.mu.Lock()
	defer m.mu.Unlock()
	m.renewed = sent
	if claim != nil {
		m.share.Published()
	}
	return true, nil
}

// list reads the Leases of all processes that share targets. Without a resource version the latest state is read.
func (m *membership) list(ctx context.Context) (*coordinationv1.LeaseList, error) {
	return m.leases.List(ctx, metav1.ListOptions{LabelSelector: labelSharding + "=" + m.election.ResourceName})
}

// reread returns the own Lease as it is.
func (m *membership) reread(ctx context.Context) (*coordinationv1.Lease, error) {
	list, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if lease := &list.Items[i]; lease.Name == m.name && (m.lease == nil || lease.UID == m.lease.UID) {
			return lease, nil
		}
	}
	return nil, errLost
}

// follow notifies of every change of the Leases but renewals, until the context ends. While there is no watch, the loop looks at them with each renewal.
func (m *membership) follow(ctx context.Context) {
	for ctx.Err() == nil {
		watching, err := m.leases.Watch(ctx, metav1.ListOptions{LabelSelector: labelSharding + "=" + m.election.ResourceName})
		if err == nil {
			claims := map[types.UID]string{}
			for event := range watching.ResultChan() {
				lease, is := event.Object.(*coordinationv1.Lease)
				if !is {
					break
				}
				claim := lease.Annotations[annotationClaim]
				if last, known := claims[lease.UID]; !known || last != claim || event.Type == watch.Deleted {
					claims[lease.UID] = claim
					m.notify()
				}
			}
			watching.Stop()
		}
		select {
		case <-ctx.Done():
		case <-m.clock.After(m.election.RetryPeriod.Duration):
		}
	}
}
