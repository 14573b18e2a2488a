package controller

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// pass is what is remembered of the runs for one ManagedResource, that of the uid. It lives in memory only: after a restart
// everything is looked at once.
//
// Invariant: doubt is never taken back, it is only settled. A doubt raises raised; a run that ended well sets settled to
// what raised was when it began. A run that ends in any other way, at whatever step, settles nothing.
type pass struct {
	uid types.UID
	// replaces is true if another ManagedResource by its name was remembered before, until what is known of that one's objects is forgotten.
	replaces        bool
	raised, settled uint64
	// fullRaised is the doubt that only a full run settles: one that looks at every object, whatever the ledger says.
	fullRaised uint64
	// periodicRaised is the latest doubt of a sync period that has objects written which no watch covers (MRC-3c: alwaysUpdate).
	periodicRaised uint64
	// askedRaised is the latest of those that ask for a full run by somebody's wish.
	askedRaised uint64
	// missedRaised is the latest doubt that changes of Secrets may have been missed: until it is settled, a version that was read before proves
	// nothing about what the Secret has, as a restored source gives it to something else in time.
	missedRaised uint64
	// complete is true if a run ended well since the start of the process; what follows is what the last such run was for.
	complete   bool
	generation int64
	end
	// told are the versions of Secrets that a watch told of and no run that ended well has read; "" is a deleted one.
	told map[string]string
	// deletions counts how often a watch told that one of them is gone.
	deletions int
	// names are the Secrets that the last run was going to read.
	names []string
	// moves counts the runs in a row that were overtaken by another form of the ManagedResource.
	moves int
	// attempted is the content whose apply failed last, tried that of the present run.
	attempted, tried string
	// operation is the operation that the last run found.
	operation string
	// pruned is what deletions were asked for with last.
	pruned demand
	// looked are the objects that runs have looked at which did not end well, since the doubt lookedFor that only a full run settles. It is replaced, never
	// changed.
	looked    map[plan.Key]struct{}
	lookedFor uint64
	// waiting is set if the last run ended because deletions are pending. It is replaced, never changed.
	waiting *waiting
	// change is the change of the content that is not applied yet.
	change change
}

// change is how long it has been known that the content of a ManagedResource changed. It lasts until a run that ended well has read all that was told;
// what fails is measured from the next change on, which may be what makes it well.
type change struct {
	// since is the zero time if nothing has changed.
	since      time.Time
	generation int64
	failed     bool
}

func (c *change) comes(generation int64, now time.Time) {
	if c.since.IsZero() || c.failed {
		c.since, c.failed = now, false
	}
	c.generation = max(c.generation, generation)
}

// demand is what a ManagedResource asks for: a specification, and the latest full run that somebody asked for.
type demand struct {
	generation int64
	asked      uint64
}

// prunes notes that a run is about to delete objects of a ManagedResource, and says whether that is asked for in another way than before.
func (p *passes) prunes(mr *resourcesv1alpha1.ManagedResource) (anew bool) {
	p.update(mr, func(pass *pass) {
		asks := demand{mr.Generation, pass.askedRaised}
		anew, pass.pruned = pass.pruned != asks, asks
	})
	return anew
}

// end is how a run ended well: with the Secrets in those versions, the checksum of what they have, ResourcesApplied, and the digest of the
// inventory.
type end struct {
	secrets   map[string]string
	checksum  string
	applied   meta.ConditionChange
	inventory uint64
}

// inDoubt says whether a run is needed though no object is in doubt.
func (p *pass) inDoubt() bool { return p.raised != p.settled || len(p.told) > 0 }

// reported says whether the status of a ManagedResource is what the last run that ended well made of it. A process that was the leader
// before may have begun a run meanwhile, and not ended it, or ended one with what it had read before; and whoever may write to the status may
// have taken entries out of the inventory, without which their objects would be left behind one day.
func (p *pass) reported(mr *resourcesv1alpha1.ManagedResource) bool {
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	return condition != nil && condition.Status == p.applied.Status && condition.Reason == p.applied.Reason &&
		mr.Status.ObservedGeneration == p.generation && mr.Status.SecretsDataChecksum != nil && *mr.Status.SecretsDataChecksum == p.checksum &&
		meta.InventoryDigest(mr.Status.Resources) == p.inventory
}

// wantsFull says whether that must be a full run: there was none yet, or it was asked for and has not ended well since.
func (p *pass) wantsFull() bool { return !p.complete || p.asksForFull() }

// asksForFull says whether a full run was asked for and has not ended well since.
func (p *pass) asksForFull() bool { return p.fullRaised > p.settled }

// isPeriodic says whether a sync period asks for updates of what no watch covers, and no run has ended well since.
func (p *pass) isPeriodic() bool { return p.periodicRaised > p.settled }

// hasRead says whether the last run that ended well read these versions of Secrets, and what they have is what it was then.
func (p *pass) hasRead(versions map[string]string) bool {
	return p.missedRaised <= p.settled && maps.Equal(versions, p.secrets)
}

// isAsked says whether somebody asked for a full run, and none has ended well since.
func (p *pass) isAsked() bool { return p.askedRaised > p.settled }

// passes is safe for concurrent use.
type passes struct {
	// clock is what changes are measured by; without one they are not.
	clock clock.PassiveClock

	mu      sync.Mutex
	byOwner map[objects.Owner]*pass
	// readers are the ManagedResources whose last run was going to read a Secret. A name is in it before the Secret is read,
	// so that each change is either read or told: no cache of ManagedResources need be asked, which may lag behind.
	readers map[types.NamespacedName]map[objects.Owner]struct{}
}

// of returns a copy of what is remembered, for a run. Who only looks may be late, and have what had the name before: then what is remembered of the
// present one must stay, as else changes of its Secrets would be told to nobody.
func (p *passes) of(mr *resourcesv1alpha1.ManagedResource) pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := *p.getLocked(mr)
	known.told = maps.Clone(known.told)
	return known
}

func (p *passes) getLocked(mr *resourcesv1alpha1.ManagedResource) *pass {
	if p.byOwner == nil {
		p.byOwner = map[objects.Owner]*pass{}
		p.readers = map[types.NamespacedName]map[objects.Owner]struct{}{}
	}
	owner := ownerOf(mr)
	known := p.byOwner[owner]
	if known != nil && known.uid == mr.UID {
		return known
	}
	if known != nil {
		p.readsLocked(owner, known, nil)
	}
	fresh := &pass{uid: mr.UID, replaces: known != nil}
	p.byOwner[owner] = fresh
	return fresh
}

func (p *passes) update(mr *resourcesv1alpha1.ManagedResource, change func(*pass)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p.getLocked(mr))
}

// doubt asks for a run, a full one if that is wanted.
func (p *passes) doubt(mr *resourcesv1alpha1.ManagedResource, full bool) {
	p.update(mr, func(pass *pass) {
		pass.raise(full)
		if full {
			pass.askedRaised = pass.raised
		}
	})
}

// replaced says whether another ManagedResource by the name of this one was remembered since that was asked last.
func (p *passes) replaced(mr *resourcesv1alpha1.ManagedResource) (is bool) {
	p.update(mr, func(pass *pass) { is, pass.replaces = pass.replaces, false })
	return is
}

// operates notes the operation that a ManagedResource asks for, and says whether the last run found another one.
func (p *passes) operates(mr *resourcesv1alpha1.ManagedResource) (anew bool) {
	operation := mr.Annotations[resourcesv1alpha1.AnnotationOperation]
	p.update(mr, func(pass *pass) { anew, pass.operation = pass.operation != operation, operation })
	return anew
}

// operationChanged notes that a ManagedResource was asked for an operation since the last run, which may have found the same one before.
func (p *passes) operationChanged(mr *resourcesv1alpha1.ManagedResource) {
	p.update(mr, func(pass *pass) { pass.operation = "" })
}

func (p *pass) raise(full bool) {
	p.raised++
	if full {
		p.fullRaised = p.raised
	}
}

// reads notes the Secrets that a run is about to read.
func (p *passes) reads(mr *resourcesv1alpha1.ManagedResource) {
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, ref := range mr.Spec.SecretRefs {
		names = append(names, ref.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readsLocked(ownerOf(mr), p.getLocked(mr), names)
}

func (p *passes) readsLocked(owner objects.Owner, known *pass, names []string) {
	for _, name := range known.names {
		key := types.NamespacedName{Namespace: owner.Namespace, Name: name}
		delete(p.readers[key], owner)
		if len(p.readers[key]) == 0 {
			delete(p.readers, key)
		}
	}
	known.names = names
	for _, name := range names {
		key := types.NamespacedName{Namespace: owner.Namespace, Name: name}
		if p.readers[key] == nil {
			p.readers[key] = map[objects.Owner]struct{}{}
		}
		p.readers[key][owner] = struct{}{}
	}
}

// finished notes a run that ended well, and returns since when the changes were known that it applied, the zero time if it applied none or there are more;
// began is what was remembered when it began. What a watch had told of by then is not
// newer than what was read, and what it told of in the meantime is no news if it is what was read.
func (p *passes) finished(mr *resourcesv1alpha1.ManagedResource, began pass, end end) (changed time.Time) {
	p.update(mr, func(pass *pass) {
		pass.settled = max(pass.settled, began.raised)
		pass.complete, pass.generation, pass.attempted, pass.moves = true, mr.Generation, "", 0
		pass.end, pass.looked = end, nil
		pass.applied.Message = "" // It may be long, and nobody asks.
		maps.DeleteFunc(pass.told, func(name, version string) bool {
			read, found := end.secrets[name]
			before, old := began.told[name]
			return !found || read == version || (old && before == version)
		})
		if len(pass.told) == 0 && mr.Generation >= pass.change.generation {
			changed, pass.change = pass.change.since, change{}
		}
	})
	return changed
}

// hasLooked notes at which objects a full run, which began with what pass says, has looked: the next one goes on with the others.
func (p *passes) hasLooked(mr *resourcesv1alpha1.ManagedResource, began pass, at map[plan.Key]outcome) {
	if !began.asksForFull() {
		return
	}
	looked := make(map[plan.Key]struct{}, len(at))
	for key := range at {
		looked[key] = struct{}{} // Also what was skipped: it was looked at before.
	}
	p.update(mr, func(pass *pass) { pass.looked, pass.lookedFor = looked, began.fullRaised })
}

// lookedAt are the objects that a full run need not look at once more, unless there is a doubt about them.
func (p *pass) lookedAt() map[plan.Key]struct{} {
	if p.lookedFor != p.fullRaised {
		return nil
	}
	return p.looked
}

func (p *passes) failed(mr *resourcesv1alpha1.ManagedResource) {
	p.update(mr, func(pass *pass) {
		pass.attempted, pass.change.failed = pass.tried, true
		pass.raise(false)
	})
}

// changesLocked notes a change of what is remembered of a ManagedResource.
func (p *passes) changesLocked(known *pass, generation int64) {
	if p.clock != nil {
		known.change.comes(generation, p.clock.Now())
	}
}

// respecified notes that the specification of a ManagedResource changed that is remembered: an event may be late, and about a former one of its name.
func (p *passes) respecified(mr *resourcesv1alpha1.ManagedResource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byOwner[ownerOf(mr)]; known != nil && known.uid == mr.UID {
		p.changesLocked(known, mr.Generation)
	}
}

// moved returns after what time the next run begins for a ManagedResource that asks for something else by now: at once, and later
// and later while nothing but what was overtaken is to be had.
func (p *passes) moved(mr *resourcesv1alpha1.ManagedResource) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.getLocked(mr)
	known.moves = min(known.moves+1, 12)
	return again << (known.moves - 1)
}

// contradicts says whether a ManagedResource that no run is due for says something else than the last run that ended well.
func (p *passes) contradicts(mr *resourcesv1alpha1.ManagedResource) bool {
	known, atRest := p.atRest(mr)
	return atRest && !known.reported(mr) // A long inventory takes its time: not under the lock.
}

// completed says whether a run for a ManagedResource ended well since the start of the process.
func (p *passes) completed(mr *resourcesv1alpha1.ManagedResource) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byOwner[ownerOf(mr)]
	return known != nil && known.uid == mr.UID && known.complete
}

// atRest returns what is remembered of a ManagedResource that no run is due for.
func (p *passes) atRest(mr *resourcesv1alpha1.ManagedResource) (pass, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byOwner[ownerOf(mr)]
	if known == nil || known.uid != mr.UID || !known.complete || known.generation != mr.Generation || known.inDoubt() {
		return pass{}, false
	}
	return pass{generation: known.generation, end: known.end}, true
}

func (p *passes) forget(owner objects.Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byOwner[owner]; known != nil {
		p.readsLocked(owner, known, nil)
		delete(p.byOwner, owner)
	}
}

// secretChanged puts the ManagedResources into doubt that read a Secret, but not this version of it, and returns them. An
// empty version means that the Secret is gone.
func (p *passes) secretChanged(secret types.NamespacedName, version string) []objects.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	var owners []objects.Owner
	for owner := range p.readers[secret] {
		known := p.byOwner[owner]
		read, found := known.secrets[secret.Name]
		if _, news := known.told[secret.Name]; !news && found && read == version {
			continue
		}
		if known.told == nil {
			known.told = map[string]string{}
		}
		known.told[secret.Name] = version
		p.changesLocked(known, 0)
		if version == "" {
			known.deletions++
			known.raise(false) // One deletion is like another: only the count tells a later one from that which a run knew of.
		}
		owners = append(owners, owner)
	}
	return owners
}

// toldOfOthers says whether a watch told, since a run began, of other versions of its Secrets than those that it read.
func (p *passes) toldOfOthers(mr *resourcesv1alpha1.ManagedResource, read map[string]string, began pass) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.getLocked(mr)
	if known.deletions != began.deletions {
		return true
	}
	for name, version := range known.told {
		before, old := began.told[name]
		if read[name] != version && (!old || before != version) {
			return true
		}
	}
	return false
}

// owners returns the ManagedResources that were applied completely; those for which full is true are asked for a full run.
func (p *passes) owners(full bool) []objects.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	owners := make([]objects.Owner, 0, len(p.byOwner))
	for owner, known := range p.byOwner {
		if known.complete {
			if full && !known.asksForFull() {
				known.raise(true)
			}
			owners = append(owners, owner)
		}
	}
	return owners
}

// rewritesUnwatched asks for a run that writes the objects which no watch covers.
func (p *passes) rewritesUnwatched(owner objects.Owner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byOwner[owner]; known != nil && !known.isPeriodic() {
		known.raise(false)
		known.periodicRaised = known.raised
	}
}

// inDoubt says whether a ManagedResource needs a run though none of its objects is in doubt.
func (p *passes) inDoubt(owner objects.Owner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byOwner[owner]
	return known != nil && known.inDoubt()
}

// allInDoubt puts every ManagedResource into doubt, after a gap in the watch of Secrets.
func (p *passes) allInDoubt() []objects.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	owners := make([]objects.Owner, 0, len(p.byOwner))
	for owner, known := range p.byOwner {
		known.raise(false)
		known.missedRaised = known.raised
		owners = append(owners, owner)
	}
	return owners
}
