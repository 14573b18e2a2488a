package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants by name.
const (
	// safety
	ownsDeleted  = "deletes only what is ours"
	sparesWanted = "deletes nothing that is wanted"
	writesWanted = "writes only what is wanted"
	hasEntry     = "what we create is in an inventory first"
	keepsEntry   = "what is there and ours stays in an inventory"
	sparesKept   = "what was kept stays"
	sparesCopies = "copies and children of what is ours are left alone"
	keepsNotes   = "what others wrote beside it stays"
	// honesty
	doneAsTold    = "what is reported was done"
	conditionTrue = "conditions say what is"
	missingIsTold = "what is missing is told"
	// liveness
	becomesWanted = "the target becomes what is wanted"
	letsGo        = "what goes away is let go"
	hasFinalizer  = "what is looked after has our finalizer"
	// economy
	comesToRest = "without news no request is sent"
	fewRequests = "requests are bounded"
)

// patience is the longest time, without any disturbance, until everybody has heard of a change and is done with it.
const patience = 40 * time.Second

// wish is what one ManagedResource wants of one object.
type wish struct {
	mr           fake.Key
	value, class string
	// since is when it began, and changed when its value was another one.
	since, changed time.Time
	// fresh is true if the inventory did not have the object then: whoever has had it since wants it.
	fresh bool
}

// claim is a ManagedResource and an object.
type claim struct{ mr, object fake.Key }

// version is one content that a Secret had; nil data for none.
type version struct {
	since time.Time
	data  map[string]any
}

// form is one specification that a ManagedResource had.
type form struct {
	since time.Time
	refs  []string
	label string
}

// oracle knows what happened and what should have. Its lock is the servers'.
type oracle struct {
	lock  sync.Mutex
	world *world

	violations []Violation
	// classes are those of the instances.
	classes map[string]string
	// made has which instance created an object, by UID.
	made map[string]string
	// released are those of them that were given up on purpose.
	released map[string]bool
	// doubtful are those whose proof may be gone, if they carry no origin: one of those who had them let go of them, or said that they are not its own, or
	// somebody else claimed them. Whether anything proves still that they are ours is not said.
	doubtful map[string]bool
	// stray are those of them that were created when no inventory had them any more, as somebody had taken a finalizer away.
	stray map[string]bool
	// had is when an object last had a value.
	had map[fake.Key]map[string]time.Time
	// missingSince is since when an object is missing that was there.
	missingSince map[fake.Key]time.Time
	// wanted is what is wanted now, each wish since a time of its own; until is when an object was last wanted.
	wanted map[fake.Key][]wish
	// contested objects were wanted by two ManagedResources at once, or handed over: what another one injected may still be on them. settleContested
	// ends that. stirred is when an object, or what is wanted of it, last changed.
	contested map[fake.Key]bool
	stirred   map[fake.Key]time.Time
	// fought is until when they wanted it differently.
	fought map[fake.Key]time.Time
	// twice are those that one ManagedResource describes twice, which nobody may want. An engine that has seen one of the descriptions only wants them.
	twice map[fake.Key]bool
	until map[fake.Key]time.Time
	// versions and forms are the history of Secrets and ManagedResources (by UID and generation).
	versions map[string][]version
	forms    map[string][]form
	servedBy map[string]string
	// kept are objects that a ManagedResource left behind on purpose, leftBehind those of them, by UID, that nobody has had since.
	kept       map[fake.Key]bool
	leftBehind map[string]bool
	// leftAt is when they were left behind, also of those that somebody has had since.
	leftAt map[string]time.Time
	// giving is what ManagedResources say of objects now: that they are not their own; givenUp is until when they did, saidToStay until when an object itself
	// said that it must not be deleted, by UID.
	giving  map[claim]bool
	givenUp map[claim]time.Time
	// lacking are the ManagedResources that lack a Secret, since when.
	lacking    map[fake.Key]time.Time
	saidToStay map[string]time.Time
	// toKeep are objects that a manifest ever said must be kept.
	toKeep map[fake.Key]bool
	// freed is true if somebody took finalizers away.
	freed bool
	// lag is how much longer than usual news may have taken in this run.
	lag        time.Duration
	restored   map[string]bool
	restoredAt map[string]time.Time
	// booted are all instances, guarded by the servers' lock.
	booted []*instance
	// superseded are instances that lost their lease and did not know it for a while.
	superseded map[string]bool
	// running are the instances that run in the end.
	running []string
	excuses excuses
	// sparing is what is left alone of objects; thereSince and goneSince is when they came and went, touched when somebody else last changed them.
	sparing                        map[fake.Key]*sparing
	thereSince, goneSince, touched map[fake.Key]time.Time
	// met is what this run covers, latestStep the step before.
	met        coverage
	latestStep string
}

func newOracle(w *world) *oracle {
	return &oracle{
		world: w, classes: map[string]string{}, made: map[string]string{}, released: map[string]bool{}, doubtful: map[string]bool{}, stray: map[string]bool{}, had: map[fake.Key]map[string]time.Time{},
		missingSince: map[fake.Key]time.Time{},
		wanted:       map[fake.Key][]wish{}, until: map[fake.Key]time.Time{},
		versions: map[string][]version{}, forms: map[string][]form{}, servedBy: map[string]string{}, kept: map[fake.Key]bool{}, contested: map[fake.Key]bool{}, stirred: map[fake.Key]time.Time{}, fought: map[fake.Key]time.Time{}, twice: map[fake.Key]bool{}, restored: map[string]bool{}, restoredAt: map[string]time.Time{},
		leftBehind: map[string]bool{}, leftAt: map[string]time.Time{}, givenUp: map[claim]time.Time{}, lacking: map[fake.Key]time.Time{}, saidToStay: map[string]time.Time{},
		toKeep: map[fake.Key]bool{}, met: coverage{}, superseded: map[string]bool{},
		sparing: map[fake.Key]*sparing{}, thereSince: map[fake.Key]time.Time{}, goneSince: map[fake.Key]time.Time{}, touched: map[fake.Key]time.Time{},
	}
}

func (w *world) violate(invariant, format string, arguments ...any) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.violateLocked(invariant, format, arguments...)
}

func (w *world) violateLocked(invariant, format string, arguments ...any) {
	v := Violation{invariant, time.Since(w.begin), fmt.Sprintf(format, arguments...)}
	w.violations = append(w.violations, v)
	w.traceLocked("!! %s", v)
}

func isInstance(by string) bool { return by != "" && by != "somebody" }

// sourceChanged observes the source.
func (w *world) sourceChanged(c fake.Change) {
	switch c.Key.GroupResource {
	case secretResource:
		v := version{since: time.Now()}
		if c.After != nil {
			v.data, _ = c.After["data"].(map[string]any)
			if v.data == nil {
				v.data = map[string]any{}
			}
		}
		w.versions[c.Key.Name] = append(w.versions[c.Key.Name], v)
	case managedResources:
		if c.After != nil {
			w.noteForm(c.After)
			w.noteTaken(c.After)
		} else if !isInstance(c.By) {
			w.noteKept(c) // Somebody took its finalizer away, so that nobody could delete them.
		}
		if isInstance(c.By) {
			w.traceLocked("-- %s %ss %s: %s", c.By, c.Verb, c.Key.Name, later(func() string { return summaryOf(c.After) }))
			w.checkInventory(c)
			w.checkFinalizer(c)
			w.checkReport(c)
		} else if c.After != nil {
			w.traceLocked("-- %s: %s", c.Key.Name, later(func() string { return marshal(c.After["spec"]) }))
		}
	case eventResource:
		if isInstance(c.By) {
			w.checkEvent(c)
		}
		return
	default:
		return
	}
	w.wantLocked()
	w.noteHeldManagedResource(c)
}

// targetChanged observes the target.
func (w *world) targetChanged(c fake.Change) {
	w.poke()
	t := thingAt(c.Key)
	if t == nil {
		w.checkStranger(c)
		return
	}
	w.settleContested()
	w.stirred[unscoped(c.Key)] = time.Now()
	values := w.had[c.Key]
	if values == nil {
		values = map[string]time.Time{}
		w.had[c.Key] = values
	}
	for _, o := range []object{c.Before, c.After} {
		if o != nil {
			values[valueOf(t, o)] = time.Now()
		}
	}
	w.traceLocked("-- %s %ss %s: %s", c.By, c.Verb, c.Key, later(func() string { return summary(t, c.After) }))
	w.noteMissing(c)
	if isInstance(c.By) {
		w.checkSpared(c)
	}
	w.noteThere(c)
	uid := fake.Text(c.Before, "metadata", "uid")
	if c.After != nil && truthy(c.Before, resourcesv1alpha1.AnnotationKeepObject) && !truthy(c.After, resourcesv1alpha1.AnnotationKeepObject) {
		w.saidToStay[uid] = time.Now()
	}
	if value := origin(c.After); value != "" && !isOurs(value) {
		w.doubtful[uid] = true // Whoever lets go of it now does so for good.
	}
	if !isInstance(c.By) {
		return
	}
	switch c.Verb {
	case "create":
		uid = fake.Text(c.After, "metadata", "uid")
		w.made[uid] = c.By
		switch {
		case w.inInventoryLocked(c.Key, fake.Key{}) || w.excused():
		case w.superseded[c.By]: // Its successor may have taken the entry out between its write of the inventory and this one.
		case w.freed:
			w.stray[uid] = true
		default:
			w.violateLocked(hasEntry, "%s created %s, which no inventory has", c.By, c.Key)
		}
	case "delete":
		if !w.owned(c.Before) && !w.recordedLocked(c.Key, uid) {
			w.violateLocked(ownsDeleted, "%s deleted %s (uid %s): it has no origin of ours, and we did not create it", c.By, c.Key, uid)
		}
		w.checkDeletion(c)
	default:
		if fake.Text(c.Before, "metadata", "annotations", note) != "" && fake.Text(c.After, "metadata", "annotations", note) == "" {
			w.violateLocked(keepsNotes, "%s took the annotation %s from %s", c.By, note, c.Key)
		}
		if w.isCreatedOnce(c.Key) && valueOf(t, c.Before) != valueOf(t, c.After) && !w.excused() {
			w.violateLocked(writesWanted, "%s wrote %s, which is to be created only once", c.By, c.Key)
		}
		if origin(c.Before) != "" && origin(c.After) == "" {
			// An instance of another class that has created it, and has it in an inventory, is not told, nor is one that has lost its lease and does not
			// know yet.
			w.released[uid] = !w.scenario.Classes && len(w.superseded) == 0 || w.made[uid] == c.By
		} else if origin(c.After) != "" {
			delete(w.released, uid)
			handedOver := valueOf(t, c.Before) == valueOf(t, c.After) && origin(c.Before) != origin(c.After)
			if !w.wantedLately(c.Key) && !handedOver && fake.Text(c.After, "metadata", "deletionTimestamp") == "" && !w.excused() {
				w.violateLocked(writesWanted, "%s wrote %s, which nobody wants", c.By, c.Key)
			}
		}
	}
}

// summary is what matters of an object.
func summary(t *thing, o object) string {
	if o == nil {
		return "gone"
	}
	text := valueOf(t, o) + " of " + origin(o) + " at " + fake.Text(o, "metadata", "resourceVersion")
	if fake.Text(o, "metadata", "deletionTimestamp") != "" {
		text += ", being deleted"
	}
	return text
}

// excused reports whether a cluster was restored a moment ago, after which no engine can know what it knew before.
func (w *world) excused() bool {
	for _, at := range w.restoredAt {
		if time.Since(at) < patience+w.lag {
			return true
		}
	}
	return false
}

func origin(o object) string {
	return fake.Text(o, "metadata", "annotations", resourcesv1alpha1.AnnotationOrigin)
}

// owned reports whether an object may be deleted by us: it says so itself, or it says nothing, and we made it and did not give it up.
func (w *world) owned(o object) bool {
	uid := fake.Text(o, "metadata", "uid")
	return isOurs(origin(o)) || origin(o) == "" && w.made[uid] != "" && (!w.released[uid] || w.leftLately(uid))
}

// leftLately reports whether somebody took a finalizer away, so that an object was left behind, and who is deleting it need not have heard of that.
func (w *world) leftLately(uid string) bool {
	at, left := w.leftAt[uid]
	return left && w.freed && time.Since(at) <= patience+w.lag
}

// isOurs reports whether an origin names a ManagedResource of the source.
func isOurs(origin string) bool { return strings.HasPrefix(origin, "simulated:") }

// originOf is the origin of what a ManagedResource has.
func originOf(mr fake.Key) string { return "simulated:" + mr.Namespace + "/" + mr.Name }

func classOf(mr object) string { return fake.Text(mr, "spec", "class") }

// finalizerOf is that of the instances of a class.
func finalizerOf(class string) string {
	return strings.TrimSuffix(resourcesv1alpha1.FinalizerName+"-"+class, "-")
}

func hasFinalizerOf(mr object, class string) bool {
	finalizers, _ := fake.Meta(mr)["finalizers"].([]any)
	return slices.Contains(finalizers, any(finalizerOf(class)))
}

// checkFinalizer is about who begins to look after a ManagedResource: its write is bound to what it has read.
func (w *world) checkFinalizer(c fake.Change) {
	if w.sourceTurnedBack() {
		return
	}
	if class := w.classes[c.By]; c.Before != nil && c.After != nil && !hasFinalizerOf(c.Before, class) && hasFinalizerOf(c.After, class) && classOf(c.Before) != class {
		w.violateLocked(hasFinalizer, "%s of class %q took %s of class %q", c.By, class, c.Key.Name, classOf(c.Before))
	}
}

// provable reports whether an instance can know that an object is owned. Of one whose origin somebody took away only the instance
// that made it can, unless it was told that the object was gone before the target was restored, and what nobody can prove to be ours stays.
func (w *world) provable(o object, by string) bool {
	uid := fake.Text(o, "metadata", "uid")
	return w.owned(o) && (origin(o) != "" || w.made[uid] == by && !w.doubtful[uid] && !w.restored["target"] && !w.scenario.leavesAlone())
}

// untold notes that an instance was not told of a creation, so that it cannot know of it but by the origin.
func (w *world) untold(cluster string, r *fake.Request) {
	if cluster != "target" || r.Verb != "create" {
		return
	}
	key := r.Key()
	key.Name = fake.Text(decode(string(r.Body)), "metadata", "name")
	w.lock.Lock()
	defer w.lock.Unlock()
	if uid := fake.Text(w.target.GetLocked(key), "metadata", "uid"); w.made[uid] == r.By {
		w.made[uid] = "untold " + r.By
	}
}

// runningNow are the names of the instances that have not crashed or ended.
func (w *world) runningNow() []string {
	var names []string
	for _, i := range w.booted {
		if !i.lost.Load() {
			names = append(names, i.name)
		}
	}
	return names
}

// checkDeletion is about objects that are wanted, have been for a while, and are in the inventory of whoever wants them, about those that
// somebody else's origin is on, and about those that are to be kept.
func (w *world) checkDeletion(c fake.Change) {
	key := unscoped(c.Key)
	if w.excused() {
		return
	}
	uid := fake.Text(c.Before, "metadata", "uid")
	if w.leftBehind[uid] && !w.leftLately(uid) {
		w.violateLocked(sparesKept, "%s deleted %s, which its ManagedResource left behind when it went", c.By, c.Key)
	}
	if truthy(c.Before, resourcesv1alpha1.AnnotationKeepObject) {
		w.violateLocked(sparesKept, "%s deleted %s, which is annotated with keep-object", c.By, c.Key)
	}
	w.checkOrigin(c, key)
	if len(w.wanted[key]) == 0 || c.Before["immutable"] == true || w.excused() ||
		fake.Text(c.Before, "metadata", "deletionTimestamp") != "" {
		return
	}
	for _, wish := range w.wanted[key] {
		// Instances of different classes may have different clusters, and do not look after each other's.
		if time.Since(wish.since) >= patience+w.lag && w.classes[c.By] == fake.Text(w.source.GetLocked(wish.mr), "spec", "class") && contains(w.inventoryLocked(wish.mr), c.Key) {
			w.violateLocked(sparesWanted, "%s deleted %s, which %s wants and has in its inventory", c.By, c.Key, wish.mr.Name)
			return
		}
	}
}

// checkOrigin is about the deletion of an object that has the origin of a ManagedResource that wants it. If that is of another class, the
// origin is no proof for whoever deletes it. If it is of the same, nobody can have meant to delete the object for its sake since it has it, but
// for whoever catches up with changes of a moment ago, one after the other.
func (w *world) checkOrigin(c fake.Change, key fake.Key) {
	class := w.classes[c.By]
	catchesUp := time.Since(w.until[key]) < patience+w.lag
	for _, wish := range w.wanted[key] {
		mr := w.source.GetLocked(wish.mr)
		if originOf(wish.mr) != origin(c.Before) || !contains(inventoryOf(mr), c.Key) {
			continue
		}
		same := classOf(mr) == class
		if c.Before["immutable"] != true && (same && wish.fresh && !catchesUp || !same && !hasFinalizerOf(mr, class) && !w.freed) {
			w.violateLocked(ownsDeleted, "%s of class %q deleted %s, which %s of class %q wants and is the origin of", c.By, class, c.Key, wish.mr.Name, classOf(mr))
		}
	}
}
