// Package turns holds the roll-out groups of one process: it follows their ConfigMaps and their members, and wakes a
// member whose turn has come.
//
// Its one idea: package rollout decides, and this package remembers only the input of the decision that is not in the
// cluster yet. All engines of a process share one Turns, so that a group spans all namespaces that the process looks
// after. It writes nothing but Events.
package turns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
)

const (
	// gather is the time in which events are gathered before they are processed together.
	gather = 50 * time.Millisecond
	// reportPause is the least time between two reports to one member that differ in their words only.
	reportPause = 10 * time.Second
	// wakeAgain is the interval of waking a member that does not take its turn.
	wakeAgain = 30 * time.Second
)

// Options are all that Turns need.
type Options struct {
	// Namespace is that of the ConfigMaps.
	Namespace string
	// Source is the client of the source.
	Source kubernetes.Interface
	// Counts reports whether this process looks after a ManagedResource.
	Counts  func(*resourcesv1alpha1.ManagedResource) bool
	Clock   clock.PassiveClock
	Metrics *Metrics
	Log     logr.Logger
}

// Turns are the roll-out groups of a process. They are safe for concurrent use.
//
// Invariant: only Ask lets a member go, under the lock. The member counts as let go from that moment on, whatever the
// watch of ManagedResources reports later.
type Turns struct {
	Options
	// changed has a value when there are unprocessed events.
	changed chan struct{}

	mu sync.Mutex
	// known is true once all existing ManagedResources and ConfigMaps have been reported. fault is the error of
	// reading the ConfigMaps.
	known bool
	fault error
	// synced reports whether all existing ManagedResources have been reported.
	synced toolscache.InformerSynced
	// configs are the ConfigMaps by name; groups those that have members.
	configs map[string]config
	groups  map[string]*group
	// groupOf has the group of each member.
	groupOf map[types.NamespacedName]string
	// wakers wake the members of a namespace, all by the empty name.
	wakers map[string]Wake
}

// Wake enqueues a ManagedResource; isTurn is true if its changed content is to be applied.
type Wake func(owner types.NamespacedName, isTurn bool)

// config is the parsed content of a ConfigMap, or the error of parsing it.
type config struct {
	uid    types.UID
	group  *rollout.Group
	refuse error
}

// group is the state of one group.
type group struct {
	name    string
	members []*member
	index   map[types.NamespacedName]int
	// roster is nil if it is to be made anew.
	roster *rollout.Roster
	dirty  bool
	next   time.Time
	// halted is the last reported state.
	halted bool
}

// member is the state of one ManagedResource.
type member struct {
	rollout.Member
	conditions meta.Conditions
	// version is the newest resource version that the watch or a run reported: a run may have read an older version.
	version uint64
	// asked is true once the process has read the content of the Secrets, ours once it has let that content go.
	asked, ours bool
	// reported is the condition that the member was last asked to report, and when; woken is the content for which the
	// member was last woken, and when.
	reported   meta.ConditionChange
	reportedAt time.Time
	woken      rollout.Revision
	wokenAt    time.Time
}

// New returns turns that are followed from Start on.
func New(o Options) *Turns {
	return &Turns{
		Options: o, changed: make(chan struct{}, 1), synced: func() bool { return false },
		configs: map[string]config{}, groups: map[string]*group{}, groupOf: map[types.NamespacedName]string{},
		wakers: map[string]Wake{},
	}
}

// Subscribe calls wake for each member of a namespace whose turn has come or whose report is to change, until the
// returned function is called. The empty name subscribes to all namespaces.
func (t *Turns) Subscribe(namespace string, wake Wake) (unsubscribe func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakers[namespace] = wake
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.wakers, namespace)
	}
}

// Answer is the result of Ask.
type Answer struct {
	// Go is true if the content may be applied, or is applied already. Record is then the record to write, without the
	// names of the Secrets.
	Go     bool
	Record rollout.Record
	// Condition is the condition that the ManagedResource has to report; nil if it is unknown yet.
	Condition *meta.ConditionChange
}

// Ask returns whether the content with a checksum, which the Secrets of a ManagedResource have, may be applied now.
func (t *Turns) Ask(mr *resourcesv1alpha1.ManagedResource, checksum string) Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.takeLocked(mr)
	if m == nil {
		return Answer{Go: true, Record: rollout.Record{Revision: rollout.Revision(checksum)}}
	}
	g := t.groups[rollout.GroupOf(mr)]
	if wanted := rollout.Revision(checksum); !m.asked || m.Wanted != wanted {
		m.asked = true
		m.wantsLocked(wanted, t.nowLocked())
		t.changedLocked(g)
	}
	if !m.IsWaiting() {
		record := rollout.Record{Revision: m.Wanted}
		if m.LetGo == m.Wanted {
			record.Time = m.LetGoAt
		}
		return Answer{Go: true, Record: record, Condition: new(rollout.LetGo(m.Wanted, m.Wanted == m.Applied))}
	}
	decision, why := t.decideLocked(g)
	at := g.index[m.NamespacedName]
	if why == nil && decision.Standings[at] == rollout.Go {
		m.LetGo, m.LetGoAt, m.ours, m.HeldSince, m.Turn = m.Wanted, t.nowLocked(), true, time.Time{}, time.Time{}
		t.Metrics.turns.WithLabelValues(g.name).Inc()
		t.changedLocked(g)
		return Answer{Go: true, Record: rollout.Record{Revision: m.LetGo, Time: m.LetGoAt},
			Condition: new(rollout.LetGo(m.Wanted, m.Wanted == m.Applied))}
	}
	return Answer{Condition: t.reportLocked(g, m, at, decision, why)}
}

// wantsLocked notes the content that a member wants from now on.
func (m *member) wantsLocked(wanted rollout.Revision, now time.Time) {
	if m.Wanted == wanted {
		return
	}
	waited := m.IsWaiting()
	m.Wanted, m.Since, m.Turn = wanted, now, time.Time{}
	switch waits := m.IsWaiting(); {
	case !waits:
		m.HeldSince = time.Time{}
	case !waited || m.HeldSince.IsZero():
		m.HeldSince = now
	}
}

// Standing returns the condition that a ManagedResource has to report, as far as it is known without reading its
// Secrets; nil if it is unknown.
func (t *Turns) Standing(mr *resourcesv1alpha1.ManagedResource) *meta.ConditionChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.takeLocked(mr)
	if m == nil || !m.asked {
		return nil
	}
	if !m.IsWaiting() {
		return new(rollout.LetGo(m.Wanted, m.Wanted == m.Applied))
	}
	g := t.groups[rollout.GroupOf(mr)]
	decision, why := t.decideLocked(g)
	return t.reportLocked(g, m, g.index[m.NamespacedName], decision, why)
}

// reportLocked returns the condition that a held member is to report, and records it as reported.
func (t *Turns) reportLocked(g *group, m *member, at int, decision rollout.Decision, why error) *meta.ConditionChange {
	change := t.conditionLocked(g, m, at, decision, why)
	if change != nil && *change != m.reported {
		m.reported, m.reportedAt = *change, t.Clock.Now()
	}
	return change
}

func (t *Turns) conditionLocked(g *group, m *member, at int, decision rollout.Decision,
	why error) *meta.ConditionChange {
	switch {
	case errors.Is(why, errUnknown):
		return nil
	case why != nil:
		return new(rollout.Unguided(&m.Member, why.Error()))
	}
	return new(rollout.Held(t.Namespace+"/"+g.name, decision.Standings[at], &m.Member, g.roster.Wave(at), g.roster.Len(),
		decision.Failed))
}

// errUnknown reports that not all members or groups are known yet.
var errUnknown = errors.New("the members of roll-out groups are not all known yet")

// decideLocked decides for a group, or returns why that is not possible.
func (t *Turns) decideLocked(g *group) (rollout.Decision, error) {
	found, has := t.configs[g.name]
	switch {
	case t.fault != nil:
		return rollout.Decision{}, fmt.Errorf("the ConfigMaps of roll-out groups in namespace %s cannot be read: %w",
			t.Namespace, t.fault)
	case !t.known:
		return rollout.Decision{}, errUnknown
	case !has:
		return rollout.Decision{}, fmt.Errorf("there is no ConfigMap %s/%s with the label %s", t.Namespace, g.name,
			resourcesv1alpha1.LabelRolloutGroup)
	case found.refuse != nil:
		return rollout.Decision{}, found.refuse
	}
	members := make([]*rollout.Member, len(g.members))
	for i, m := range g.members {
		m.Judge(m.conditions, found.group.Progressing)
		members[i] = &m.Member
	}
	if g.roster == nil {
		g.roster = found.group.Assign(members)
	}
	now := t.Clock.Now()
	decision := found.group.Decide(members, g.roster, now)
	for i, m := range members {
		if !decision.HasTurn(i) {
			m.Turn = time.Time{}
		} else if m.Turn.IsZero() {
			m.Turn = now
		}
	}
	return decision, nil
}

// takeLocked records the state of a ManagedResource; it returns nil if it is in no group.
func (t *Turns) takeLocked(mr *resourcesv1alpha1.ManagedResource) *member {
	key, name := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}, rollout.GroupOf(mr)
	if !rollout.IsMember(mr) || !t.Counts(mr) {
		name = ""
	}
	if before, found := t.groupOf[key]; found && before != name {
		t.dropLocked(key)
	}
	if name == "" {
		return nil
	}
	g := t.groups[name]
	if g == nil {
		g = &group{name: name, index: map[types.NamespacedName]int{}}
		t.groups[name] = g
	}
	says := rollout.MemberOf(mr)
	at, found := g.index[key]
	if !found {
		at, g.index[key], t.groupOf[key] = len(g.members), len(g.members), name
		says.Seen = t.Clock.Now()
		g.members, g.roster = append(g.members, &member{Member: says}), nil
	}
	m := g.members[at]
	version, _ := strconv.ParseUint(mr.ResourceVersion, 10, 64)
	if version < m.version {
		return m // A later version has been recorded.
	}
	m.version = version
	if !maps.Equal(m.Labels, says.Labels) {
		g.roster = nil
	}
	m.Labels, m.Applied, m.conditions = says.Labels, says.Applied, mr.Status.Conditions
	switch {
	case says.Wanted == rollout.Unread && m.Wanted == m.Applied:
		m.asked = false // Until somebody reads it again.
		m.wantsLocked(rollout.Unread, t.nowLocked())
	// It is about to be read.
	case m.Wanted == rollout.Unread && says.Wanted == "" && mr.Generation != mr.Status.ObservedGeneration:
	case !m.asked && says.Wanted != m.Wanted:
		m.Wanted, m.Since, m.HeldSince, m.Turn = says.Wanted, says.Since, says.HeldSince, time.Time{}
	case !m.asked && says.Wanted != rollout.Unread:
		m.Since, m.HeldSince = says.Since, says.HeldSince
	}
	if !m.ours {
		m.LetGo, m.LetGoAt = says.LetGo, says.LetGoAt
	}
	t.changedLocked(g)
	return m
}

// dropLocked takes a member out of its group.
func (t *Turns) dropLocked(key types.NamespacedName) {
	g := t.groups[t.groupOf[key]]
	delete(t.groupOf, key)
	if g == nil {
		return
	}
	at, last := g.index[key], len(g.members)-1
	g.members[at] = g.members[last]
	g.index[g.members[at].NamespacedName] = at
	delete(g.index, key)
	g.members, g.roster = g.members[:last], nil
	if last == 0 {
		delete(t.groups, g.name)
		t.Metrics.forget(g.name)
		return
	}
	t.changedLocked(g)
}

// changedLocked marks a group as changed, so that Start decides for it again; nil stands for all groups.
func (t *Turns) changedLocked(g *group) {
	if g != nil {
		g.dirty = true
	} else {
		for _, each := range t.groups {
			each.dirty = true
		}
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// nowLocked is the time as conditions have it, to the second.
func (t *Turns) nowLocked() time.Time { return t.Clock.Now().Truncate(time.Second) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (t *Turns) NeedLeaderElection() bool { return true }

// Start follows the ConfigMaps, and wakes the members whose turn has come, until the context ends.
func (t *Turns) Start(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { t.follow(ctx) })
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.changed:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(gather): // A storm of news is looked at a few times.
			}
		case <-timer.C:
		}
		if next := t.look(ctx); next > 0 {
			timer.Reset(next)
		}
	}
}

// look decides for all groups with news, wakes their members, and returns after what time to look again, zero for
// never.
func (t *Turns) look(ctx context.Context) time.Duration {
	type call struct {
		wake   Wake
		key    types.NamespacedName
		isTurn bool
	}
	var calls []call
	t.mu.Lock()
	now := t.Clock.Now()
	next := time.Time{}
	for _, g := range t.groups {
		if g.dirty || !g.next.IsZero() && !now.Before(g.next) {
			t.lookAtLocked(ctx, g, func(m *member, isTurn bool) {
				wake := t.wakers[m.Namespace]
				if wake == nil {
					wake = t.wakers[""]
				}
				if wake != nil {
					calls = append(calls, call{wake, m.NamespacedName, isTurn})
				}
			})
		}
		if !g.next.IsZero() && (next.IsZero() || g.next.Before(next)) {
			next = g.next
		}
	}
	t.mu.Unlock()
	for _, c := range calls {
		c.wake(c.key, c.isTurn)
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(now), gather)
}

// lookAtLocked decides for a group, and calls wake for each member whose turn has come or that has something else to
// report.
func (t *Turns) lookAtLocked(ctx context.Context, g *group, wake func(m *member, isTurn bool)) {
	now := t.Clock.Now()
	decision, why := t.decideLocked(g)
	g.dirty, g.next = false, decision.Next
	if errors.Is(why, errUnknown) {
		g.next = now.Add(time.Second)
		return
	}
	again := func(at time.Time) {
		if g.next.IsZero() || at.Before(g.next) {
			g.next = at
		}
	}
	for i, m := range g.members {
		if !m.asked || !m.IsWaiting() {
			continue
		}
		if why == nil && decision.Standings[i] == rollout.Go {
			if at := m.wokenAt.Add(wakeAgain); m.woken == m.Wanted && now.Before(at) {
				again(at)
				continue
			}
			m.woken, m.wokenAt = m.Wanted, now
			again(now.Add(wakeAgain))
			wake(m, true)
			continue
		}
		change := t.conditionLocked(g, m, i, decision, why)
		if change == nil || *change == m.reported {
			continue
		}
		if at := m.reportedAt.Add(reportPause); change.Reason == m.reported.Reason && now.Before(at) {
			again(at)
			continue
		}
		m.reportedAt = now // It asks what to report, which notes the rest.
		again(now.Add(reportPause))
		wake(m, false)
	}
	t.tellLocked(ctx, g, decision, why)
}
