package targets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-project/espalier/internal/managedresource/targets/holding"
)

// labelProcess is on the Leases of processes; its value is leaderElection.resourceName, the same for all of them.
const labelProcess = "resources.gardener.cloud/shared-targets"

// Errors about Leases.
var (
	errUnobserved = errors.New("waiting for the leases of targets")
	errLost       = errors.New("the process does not hold the lease of the target")
	errTaken      = errors.New("another process was first")
)

// Leases are the part of Targets that each replica runs, whether it leads or not: it renews the Lease of the process,
// lists those of all targets, and takes, renews and releases those of targets that this process may hold.
func (t *Targets) Leases() manager.Runnable { return leases{t} }

type leases struct{ *Targets }

var _ manager.LeaderElectionRunnable = leases{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (leases) NeedLeaderElection() bool { return false }

// newHoldings returns the holdings of a process with a new name.
func (t *Targets) newHoldings() {
	l := &t.Config.LeaderElection
	name := l.ResourceName + "-" + string(uuid.NewUUID())[:8]
	t.holder = l.ResourceNamespace + "/" + name
	t.own = t.lockOf(l.ResourceNamespace, name, map[string]string{labelProcess: l.ResourceName})
	ours := regexp.MustCompile("^" + regexp.QuoteMeta(l.ResourceNamespace+"/"+l.ResourceName) + "-[0-9a-f]{8}$")
	t.holdings = holding.New(t.holder, ours.MatchString,
		holding.Times{Lease: l.LeaseDuration.Duration, Deadline: l.RenewDeadline.Duration, Period: l.RetryPeriod.Duration})
}

func (t *Targets) lockOf(namespace, name string, labels map[string]string) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: t.Source.CoordinationV1(), Labels: labels,
		LockConfig: resourcelock.ResourceLockConfig{Identity: t.holder},
	}
}

// Start observes Leases and decides until the context ends. It ends lost engines before it does anything that takes
// time.
func (l leases) Start(ctx context.Context) error {
	defer l.leave(ctx)
	period := l.Config.LeaderElection.RetryPeriod.Duration
	timer := l.Clock.NewTimer(0)
	defer timer.Stop()
	for due := l.Clock.Now(); ; {
		deadline, wake := l.decide(ctx)
		if now := l.Clock.Now(); !now.Before(due) {
			due = now.Add(period)
			if err := l.observe(ctx); err != nil {
				l.Log.V(1).Info("The leases of targets cannot be renewed and read", "error", err.Error())
			}
			deadline, wake = l.decide(ctx)
			if earliest := now.Add(period / 4); !wake.IsZero() && wake.Before(earliest) {
				wake = earliest
			}
		}
		if !wake.IsZero() && wake.Before(due) {
			due = wake
		}
		now, next := l.Clock.Now(), due
		if now.Before(deadline) && deadline.Before(next) {
			next = deadline
		}
		timer.Reset(max(next.Sub(now), 0))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
		case <-l.changed:
		}
	}
}

// limited returns a context for requests about Leases, which must not hold up the next ones.
func (t *Targets) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, t.Config.LeaderElection.RenewDeadline.Duration/3)
}

// observe renews the Lease of the process, and lists all Leases then. A list without a resource version is of the
// latest state.
func (t *Targets) observe(ctx context.Context) error {
	ctx, cancel := t.limited(ctx)
	defer cancel()
	t.mu.Lock()
	left := t.gone
	t.mu.Unlock()
	if left {
		return nil
	}
	l := &t.Config.LeaderElection
	o := holding.Observation{Sent: t.Clock.Now(), Processes: map[string]uint64{}, Leases: map[string]holding.Lease{}}
	if err := t.renewOwn(ctx); err != nil {
		return err
	}
	processes, err := t.Source.CoordinationV1().Leases(l.ResourceNamespace).List(ctx,
		metav1.ListOptions{LabelSelector: labelProcess + "=" + l.ResourceName})
	if err != nil {
		return err
	}
	all, err := t.Source.CoordinationV1().Leases("").List(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + *t.Config.Targets.AwaitLease})
	if err != nil {
		return err
	}
	o.Received = t.Clock.Now()
	for i := range processes.Items {
		o.Processes[l.ResourceNamespace+"/"+processes.Items[i].Name] = versionOf(&processes.Items[i])
	}
	for i := range all.Items {
		lease := contentOf(resourcelock.LeaseSpecToLeaderElectionRecord(&all.Items[i].Spec))
		lease.Version = versionOf(&all.Items[i])
		o.Leases[all.Items[i].Namespace] = lease
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	complete, lost := t.holdings.Observe(o)
	t.observed = true
	for _, namespace := range complete {
		close(t.members[namespace].complete)
	}
	for _, namespace := range lost {
		t.endLocked(namespace, "its lease is not that of this process any more")
	}
	return nil
}

func versionOf(lease *coordinationv1.Lease) uint64 {
	version, _ := strconv.ParseUint(lease.ResourceVersion, 10, 64)
	return max(version, 1)
}

func contentOf(record *resourcelock.LeaderElectionRecord) holding.Lease {
	return holding.Lease{Holder: record.HolderIdentity, Lasts: time.Duration(record.LeaseDurationSeconds) * time.Second,
		Renewed: record.RenewTime.UnixMicro()}
}

// renewOwn renews the Lease of the process, or creates it if it is not there.
func (t *Targets) renewOwn(ctx context.Context) error {
	record := t.recordFor(t.holder, t.Config.LeaderElection.LeaseDuration.Duration)
	err := t.own.Update(ctx, record)
	if err == nil {
		return nil
	}
	_, _, err = t.own.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return t.own.Create(ctx, record)
	case err != nil:
		return err
	}
	return t.own.Update(ctx, record)
}

func (t *Targets) recordFor(holder string, lasts time.Duration) resourcelock.LeaderElectionRecord {
	now := metav1.NewTime(t.Clock.Now())
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: int(lasts.Seconds()),
		AcquireTime: now, RenewTime: now}
}

// decide does what the holdings decide. It returns the time at which the engines end unless an observation succeeds,
// and that of an early observation.
func (t *Targets) decide(ctx context.Context) (deadline, wake time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.Clock.Now()
	for _, namespace := range t.holdings.Fence(now) {
		t.endLocked(namespace, "its lease could not be renewed in time")
	}
	d := t.holdings.Decide(now, slices.Collect(maps.Keys(t.candidates)), t.Config.Sharded())
	t.metrics.members.Set(float64(d.Live))
	for _, take := range d.Take {
		t.candidates[take.Target].begin(take)
	}
	for _, namespace := range d.Give {
		t.endLocked(namespace, "other processes have fewer targets")
	}
	for _, namespace := range d.Renew {
		if m := t.members[namespace]; m != nil {
			go m.renewLease(of(ctx, m.name))
		}
	}
	for _, namespace := range d.Free {
		go t.release(of(ctx, namespace), t.lockOf(namespace, *t.Config.Targets.AwaitLease, nil), false)
	}
	for process, version := range d.Dead {
		go t.bury(ctx, process, version)
	}
	if d.Foreign != nil {
		t.foreignLocked(ctx, d.Foreign)
	}
	return t.holdings.Deadline(), d.Wake
}

// foreignLocked notes which targets others hold, such as a resource-manager for one target alone.
func (t *Targets) foreignLocked(ctx context.Context, held map[string]string) {
	for namespace, c := range t.candidates {
		holder := held[namespace]
		switch {
		case holder == c.foreign:
		case holder != "":
			go t.stateLocked(ctx, c, StateLeased,
				fmt.Errorf("lease %s/%s is held by %s", namespace, *t.Config.Targets.AwaitLease, holder))()
		case t.members[namespace] == nil:
			t.metrics.forget(c.name)
		}
		c.foreign = holder
	}
}

// take takes the Lease of the target, if its content has not changed since the decision.
func (m *member) take(ctx context.Context, take holding.Take) bool {
	m.renewal.Lock()
	defer m.renewal.Unlock()
	ctx, cancel := m.limited(ctx)
	defer cancel()
	m.lock = m.lockOf(m.namespace, *m.Config.Targets.AwaitLease, nil)
	m.record = m.recordFor(m.holder, holding.Lasts)
	sent := m.Clock.Now()
	err := m.write(ctx, take.Seen)
	if err != nil {
		m.log.V(1).Info("The lease of the target cannot be taken", "error", err.Error())
		m.lock = nil
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holdings.Taken(take, sent, m.Clock.Now(), sent.Add(rand.N(holding.Renewal)))
	notify(m.Targets.changed)
	return true
}

func (m *member) write(ctx context.Context, seen holding.Lease) error {
	found, _, err := m.lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err) && seen.Version == 0:
		return m.lock.Create(ctx, m.record)
	case err != nil:
		return err
	}
	now := contentOf(found)
	if now.Version = seen.Version; now != seen {
		return errTaken
	}
	m.record.LeaderTransitions = found.LeaderTransitions + 1
	return m.lock.Update(ctx, m.record)
}

// renewLease renews the Lease of the target, unless it is another process's. After a failure the process tries again,
// until the next list shows that the Lease is lost.
func (m *member) renewLease(ctx context.Context) {
	m.renewal.Lock()
	defer m.renewal.Unlock()
	if m.lock == nil {
		return // It is released.
	}
	ctx, cancel := m.limited(ctx)
	defer cancel()
	sent := m.Clock.Now()
	m.record.RenewTime = metav1.NewTime(sent)
	err := m.lock.Update(ctx, m.record)
	if apierrors.IsConflict(err) {
		if found, _, readErr := m.lock.Get(ctx); readErr == nil && found.HolderIdentity == m.holder {
			err = m.lock.Update(ctx, m.record)
		}
	}
	if err != nil {
		m.log.V(1).Info("The lease of the target cannot be renewed", "error", err.Error())
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holdings.Renewed(m.namespace, sent, sent.Add(holding.Renewal*3/4+rand.N(holding.Renewal/2)))
}

// giveBack releases the Lease of the target. Work that ends while the process holds the Lease is clean.
func (m *member) giveBack(ctx context.Context) {
	m.renewal.Lock()
	defer m.renewal.Unlock()
	if m.lock != nil {
		m.release(ctx, m.lock, m.refused() == nil)
		m.lock = nil
	}
}

// release takes the name of the process out of the Lease of a target. After clean work others take it at once;
// otherwise they wait, because another process may have an engine for the target still.
func (t *Targets) release(ctx context.Context, lock resourcelock.Interface, clean bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Config.LeaderElection.RenewDeadline.Duration)
	defer cancel()
	found, _, err := lock.Get(ctx)
	if err == nil && found.HolderIdentity != t.holder || apierrors.IsNotFound(err) {
		return
	}
	lasts := t.Config.LeaderElection.LeaseDuration.Duration
	if clean {
		lasts = time.Second
	}
	if err == nil {
		record := t.recordFor("", lasts)
		record.LeaderTransitions = found.LeaderTransitions
		err = lock.Update(ctx, record)
	}
	if err != nil {
		t.Log.Info("The lease of a target cannot be released; others wait until it expires", "lease", lock.Describe(),
			"error", err.Error())
	}
}

// refused returns an error unless the process holds the Lease of the target.
func (m *member) refused() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holdings.Active(m.namespace, m.Clock.Now()) {
		return nil
	}
	return errLost
}

// bury deletes the Lease of a process that has not been renewed for a long time.
func (t *Targets) bury(ctx context.Context, process string, version uint64) {
	ctx, cancel := t.limited(ctx)
	defer cancel()
	namespace, name, _ := strings.Cut(process, "/")
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To(strconv.FormatUint(version, 10))}}
	if err := t.Source.CoordinationV1().Leases(namespace).Delete(ctx, name, options); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Log.V(1).Info("The lease of a process that is gone cannot be deleted", "lease", process, "error", err.Error())
	}
}

// leave deletes the Lease of the process once it holds nothing.
func (t *Targets) leave(ctx context.Context) {
	t.mu.Lock()
	holds := t.gone || len(t.members) > 0
	t.gone = t.gone || !holds
	t.mu.Unlock()
	if holds {
		return
	}
	ctx, cancel := t.limited(context.WithoutCancel(ctx))
	defer cancel()
	namespace, name, _ := strings.Cut(t.holder, "/")
	err := t.Source.CoordinationV1().Leases(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Log.Error(err, "The lease of the process cannot be deleted; others count the process until the lease expires",
			"lease", name)
	}
}
