package simulation

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants about what is to be left alone. They follow from the contract (MRF-10 … MRF-16), and share no code with the engine.
const (
	leavesHeld    = "what is to be left alone is left alone"
	endsHolds     = "a hold ends at its time"
	dropsNoHolds  = "a hold that is not in force is removed"
	longestHold   = 24*time.Hour + time.Minute
	soonEnough    = time.Second
	shortestWatch = 10 * time.Minute
)

// spared has the effects of holds on an object.
type spared uint8

const (
	// held is an object that is not written.
	held spared = 1 << iota
	// heldAway is an object that is not created again if it is gone.
	heldAway
	// holdable is an object on which a hold counts.
	holdable
	sparedKinds = iota
)

// sparing has the effects of holds on an object, and since when, as far as ManagedResources and the object itself say.
type sparing struct {
	// surely has the effects for all who want the object, perhaps those for any of them, until the time in ends.
	surely, perhaps spared
	ends            time.Time
	// since is since when each part surely is, until when it last perhaps was.
	since, until [sparedKinds]time.Time
}

func (s *sparing) sinceOf(part spared) time.Time { return s.since[bits.TrailingZeros8(uint8(part))] }

// holdOf reads the annotations of a hold at a moment: until when it is in force. The time is zero for one that is over or refused.
func holdOf(o object, now time.Time) time.Time {
	until, err := time.Parse(time.RFC3339, fake.Text(annotationsOf(o), resourcesv1alpha1.AnnotationLeaveAloneUntil))
	if err != nil || !now.Before(until) || until.After(now.Add(longestHold)) {
		return time.Time{}
	}
	return until
}

func annotationsOf(o object) object {
	metadata, _ := o["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// saysHold reports whether an object has any annotation of a hold.
func saysHold(o object) bool {
	_, found := annotationsOf(o)[resourcesv1alpha1.AnnotationLeaveAloneUntil]
	return found
}

// allowsHolds reports whether a hold counts on the objects of a ManagedResource.
func (w *world) allowsHolds(mr object) bool {
	allowed, err := strconv.ParseBool(fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationAllowHolds))
	return err == nil && allowed || err != nil && w.scenario.Holds.Allow
}

// sparedNow returns the present effects of holds on an object that somebody wants.
func (w *world) sparedNow(at fake.Key, now time.Time) (surely, perhaps spared, ends time.Time) {
	key, _ := w.keyLocked(thingAt(at))
	own := holdOf(w.target.GetLocked(key), now)
	surely = held | heldAway | holdable
	for _, wish := range w.wanted[at] {
		mr, parts := w.source.GetLocked(wish.mr), spared(0)
		until := holdOf(mr, now)
		if !until.IsZero() {
			parts |= held | heldAway
		}
		if w.allowsHolds(mr) {
			parts |= holdable
			if !own.IsZero() {
				parts |= held
			}
			until = latest(until, own)
		}
		surely, perhaps, ends = surely&parts, perhaps|parts, latest(ends, until)
	}
	others := slices.ContainsFunc(slices.Collect(maps.Keys(w.source.AllLocked())), func(mr fake.Key) bool {
		return mr.GroupResource == managedResources && contains(w.inventoryLocked(mr), at) && !w.wants(at, mr)
	})
	if others || len(w.wanted[at]) == 0 {
		surely = 0 // It is about to be deleted, released or handed over (MRF-16).
	}
	return surely, perhaps, ends
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (w *world) wants(at, mr fake.Key) bool {
	return slices.ContainsFunc(w.wanted[at], func(wish wish) bool { return wish.mr == mr })
}

// noteSparing notes anew which objects are left alone. It is called when anything has changed.
func (w *world) noteSparing() {
	if !w.scenario.Holds.On {
		return
	}
	now := time.Now()
	for _, t := range things {
		at := unscoped(t.key(t.namespaced))
		s := w.sparing[at]
		if s == nil {
			s = &sparing{}
			w.sparing[at] = s
		}
		surely, perhaps, ends := w.sparedNow(at, now)
		for i := range sparedKinds {
			part := spared(1 << i)
			if s.perhaps&part != 0 {
				s.until[i] = now
				if part != holdable && s.ends.Before(now) {
					s.until[i] = s.ends
				}
			}
			if surely&part == 0 {
				s.since[i] = time.Time{}
			} else if s.since[i].IsZero() {
				s.since[i] = now
			}
		}
		s.surely, s.perhaps, s.ends = surely, perhaps, ends
	}
}

// lately returns the effects that holds may have on an object, or may have had a while ago, so that it need not be as it is wanted.
func (w *world) lately(at fake.Key) (parts spared) {
	if !w.scenario.Holds.On {
		return 0
	}
	w.noteSparing()
	s := w.sparing[unscoped(at)]
	for i := range sparedKinds {
		if s.perhaps&(1<<i) != 0 || !s.until[i].IsZero() && time.Since(s.until[i]) < patience+w.lag {
			parts |= 1 << i
		}
	}
	return parts
}

// heardWithin is the longest time until every instance goes by what manifests and ManagedResources say: it has heard of that, and has ended what it
// began before.
func (w *world) heardWithin() time.Duration {
	if w.isDisturbed() {
		return patience + w.lag
	}
	const longestRun = 10 * time.Second
	return longestRun + 4*w.newsWithin()
}

// isDisturbed reports whether requests fail, processes end or watches are late in a scenario.
func (w *world) isDisturbed() bool {
	return len(w.scenario.Faults) > 0 || slices.ContainsFunc(w.scenario.Steps, func(s Step) bool { return disturbs[s.Do] })
}

// certainly returns the effects that holds have had on an object for so long that every instance must have heard of that.
func (w *world) certainly(at fake.Key) (parts spared) {
	s := w.sparing[unscoped(at)]
	for i := range sparedKinds {
		if s.surely&(1<<i) != 0 && time.Since(s.since[i]) >= w.heardWithin() {
			parts |= 1 << i
		}
	}
	return parts
}

// checkSpared is about what an instance writes to an object that is left alone. That is certain if all who want it have left it alone for a while, or if the
// very version that is written over has a hold, and holds have counted on it for a while.
func (w *world) checkSpared(c fake.Change) {
	if !w.scenario.Holds.On || w.excused() {
		return
	}
	at := unscoped(c.Key)
	before := w.sparing[at]
	w.noteSparing()
	if before == nil || slices.ContainsFunc(w.wanted[at], func(wish wish) bool { return time.Since(wish.since) < w.heardWithin() }) {
		return
	}
	parts, why := w.certainly(at), ""
	if until := holdOf(c.Before, time.Now()); parts&holdable != 0 && !until.IsZero() {
		parts |= held
		why = ", and has a hold until " + until.UTC().Format(time.RFC3339)
	}
	t := thingAt(c.Key)
	switch {
	case c.Verb == "create":
		if since, gone := w.goneSince[at]; gone && parts&heldAway != 0 && w.hadLongBefore(at, since) {
			w.violateLocked(leavesHeld, "%s created %s again, which is gone since %v, and its ManagedResource is left alone", c.By, c.Key, since.Sub(w.begin))
		}
	case c.Verb == "delete":
		if parts&held != 0 && fake.Text(c.Before, "metadata", "deletionTimestamp") == "" {
			w.violateLocked(leavesHeld, "%s deleted %s, which is held%s", c.By, c.Key, why)
		}
	case c.Before == nil || c.After == nil:
	case parts&held != 0 && (t.value(c.Before) != t.value(c.After) || labelOf(c.Before) != labelOf(c.After)):
		w.violateLocked(leavesHeld, "%s changed %s from %s to %s, which is held%s", c.By, c.Key, valueOf(t, c.Before), valueOf(t, c.After), why)
	}
}

func labelOf(o object) string { return fake.Text(o, "metadata", "labels", "sim") }

// hadLongBefore reports whether all who want an object had wanted it, and had it left alone, for a while when it went.
func (w *world) hadLongBefore(at fake.Key, gone time.Time) bool {
	long := gone.Add(-w.heardWithin())
	return !w.restored["target"] && w.thereSince[at].Before(long) && !slices.ContainsFunc(w.wanted[at], func(wish wish) bool { return wish.since.After(long) || wish.changed.After(long) }) &&
		w.sparing[at].sinceOf(heldAway).Before(long)
}

// noteThere notes when an object came and went, and when somebody else last changed it.
func (w *world) noteThere(c fake.Change) {
	if !w.scenario.Holds.On {
		return
	}
	at, now := unscoped(c.Key), time.Now()
	switch {
	case c.After == nil:
		w.goneSince[at] = now
		delete(w.thereSince, at)
	case c.Before == nil:
		delete(w.goneSince, at)
		w.thereSince[at] = now
	}
	if !isInstance(c.By) {
		w.touched[at] = now
	}
	w.noteSparing()
	if c.Before != nil && c.After != nil && !isInstance(c.By) {
		w.awaitEnd(c, []fake.Key{at})
	}
}

// noteHeldManagedResource notes that a ManagedResource has other annotations than before.
func (w *world) noteHeldManagedResource(c fake.Change) {
	if !w.scenario.Holds.On {
		return
	}
	w.noteSparing()
	if c.Before == nil || c.After == nil || isInstance(c.By) {
		return
	}
	var all []fake.Key
	for at := range w.wanted {
		if w.wants(at, c.Key) {
			all = append(all, at)
		}
	}
	w.awaitEnd(c, all)
}

// awaitEnd checks objects when a hold on them ends, by its time or because somebody ends it (MRF-13).
func (w *world) awaitEnd(c fake.Change, all []fake.Key) {
	now := time.Now()
	was, ends := holdOf(c.Before, now), holdOf(c.After, now)
	switch {
	case !ends.IsZero() && ends.Sub(now) < shortestWatch && !was.Equal(ends):
	case !was.IsZero() && ends.IsZero():
		ends = now
	default:
		return
	}
	if w.isDisturbed() {
		return
	}
	within := soonEnough + 10*w.newsWithin()
	w.rebooting.Go(func() {
		time.Sleep(time.Until(ends) + within)
		w.lock.Lock()
		defer w.lock.Unlock()
		for _, at := range all {
			w.checkEnded(at, ends)
		}
	})
}

// checkEnded is about an object that is not held since a moment: it has been as it is wanted since then, and says nothing of a hold any more.
func (w *world) checkEnded(at fake.Key, ended time.Time) {
	w.noteSparing()
	key, served := w.keyLocked(thingAt(at))
	s, o, wishes := w.sparing[at], w.target.GetLocked(key), w.wanted[at]
	if o == nil || !served || len(wishes) != 1 || s.perhaps&held != 0 || w.touched[at].After(ended) || w.contested[at] {
		return
	}
	wish, mr := wishes[0], w.source.GetLocked(wishes[0].mr)
	_, ok := w.wishesLocked(wish.mr, mr)
	long := ended.Add(-w.heardWithin())
	if !ok || wish.value == anything || wish.changed.After(long) || !w.servesLocked(mr) || w.inInventoryLocked(at, wish.mr) || w.isStuck(key, wish.value, wish.class) {
		return
	}
	for i := range sparedKinds {
		if s.until[i].After(ended) && 1<<i&holdable == 0 {
			return // Another hold ended later.
		}
	}
	if more := w.scenario.More; more.On && thingAt(at) == things[more.Refused] && w.made[fake.Text(o, "metadata", "uid")] == "" {
		return // Somebody protects it.
	}
	if is := valueOf(thingAt(at), o); is != wish.value && w.lastHad(key, wish.value, false).Before(ended) {
		w.violateLocked(endsHolds, "%s is %s and not %s: it is not held since %v", key, is, wish.value, ended.Sub(w.begin))
	}
	if saysHold(o) && s.perhaps&holdable != 0 && s.sinceOf(holdable).Before(long) {
		w.violateLocked(dropsNoHolds, "%s still says that it is held, which ended at %v", key, ended.Sub(w.begin))
	}
}

// checkHolds is about annotations of holds that are over or refused, in the end.
func (w *world) checkHolds() {
	if !w.scenario.Holds.On {
		return
	}
	w.noteSparing()
	now := time.Now()
	for key, mr := range w.source.AllLocked() {
		if key.GroupResource != managedResources || fake.Text(mr, "metadata", "deletionTimestamp") != "" || !w.concernsLocked(mr) {
			continue
		}
		if holdOf(mr, now).IsZero() && saysHold(mr) {
			w.violateLocked(dropsNoHolds, "%s says that it is held until %q", key, fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationLeaveAloneUntil))
		}
	}
	for at, wishes := range w.wanted {
		key, _ := w.keyLocked(thingAt(at))
		o := w.target.GetLocked(key)
		if !holdOf(o, now).IsZero() || !saysHold(o) || w.certainly(at)&holdable == 0 {
			continue
		}
		if w.sparing[at].sinceOf(holdable).After(w.touched[at]) {
			continue // It did not count when it was set, and nobody need check the object since.
		}
		if slices.ContainsFunc(wishes, func(wish wish) bool {
			_, ok := w.wishesLocked(wish.mr, w.source.GetLocked(wish.mr))
			return !ok || wish.value == anything || w.isStuck(key, wish.value, wish.class)
		}) {
			continue
		}
		w.violateLocked(dropsNoHolds, "%s says that it is held until %q", key, fake.Text(o, "metadata", "annotations", resourcesv1alpha1.AnnotationLeaveAloneUntil))
	}
}
