package simulation

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants about what is to be left alone. They follow from the contract (MRF-1 … MRF-16), and share no code with the engine.
const (
	leavesHeld    = "what is to be left alone is left alone"
	endsHolds     = "a hold ends at its time"
	dropsNoHolds  = "a hold that is not in force is removed"
	longestHold   = 24*time.Hour + time.Minute
	soonEnough    = time.Second
	shortestWatch = 10 * time.Minute
)

// spared are parts of an object that are left alone, and why.
type spared uint8

const (
	ignoredValue spared = 1 << iota
	ignoredLabel
	heldValue
	heldLabel
	// heldAway is an object that is not created again if it is gone.
	heldAway
	// holdable is an object on which a hold counts.
	holdable
	sparedKinds = iota
)

const (
	heldValues = ignoredValue | heldValue
	heldLabels = ignoredLabel | heldLabel
	heldParts  = heldValue | heldLabel | heldAway
)

// sparing is what is left alone of an object since when, as far as manifests, ManagedResources and the object itself say.
type sparing struct {
	// surely is what all who want the object leave alone, perhaps what any of them does, until the time in ends.
	surely, perhaps spared
	ends            time.Time
	// since is since when each part surely is, until when it last perhaps was.
	since, until [sparedKinds]time.Time
}

func (s *sparing) sinceOf(part spared) time.Time { return s.since[bits.TrailingZeros8(uint8(part))] }

// holdsOf reads the annotations of a hold at a moment: which parts it has left alone, and until when it is in force. Nothing is left alone by one that
// is over or refused.
func holdsOf(o object, now time.Time) (parts spared, until time.Time) {
	annotations := annotationsOf(o)
	until, err := time.Parse(time.RFC3339, fake.Text(annotations, resourcesv1alpha1.AnnotationLeaveAloneUntil))
	if err != nil || !now.Before(until) || until.After(now.Add(longestHold)) {
		return 0, time.Time{}
	}
	fields, limited := annotations[resourcesv1alpha1.AnnotationLeaveAloneFields].(string)
	if !limited {
		return heldParts, until
	}
	for pointer := range strings.FieldsFuncSeq(fields, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch {
		case pointer == labelPointer:
			parts |= heldLabel
		case slices.ContainsFunc(things, func(t *thing) bool { return t.field == pointer }):
			parts |= heldValue
		default:
			return 0, time.Time{}
		}
	}
	return parts, until
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

// ignoredBy is what the manifest of a ManagedResource has ignored of an object.
func (w *world) ignoredBy(mr object, at fake.Key) spared {
	t := thingAt(at)
	for _, name := range referencesOf(mr) {
		secret := w.source.GetLocked(fake.Key{GroupResource: secretResource, Namespace: sourceNamespace, Name: name})
		data, _ := secret["data"].(map[string]any)
		text, _ := data[t.name+".json"].(string)
		switch t.modes[text] {
		case ignoresValue:
			return ignoredValue
		case ignoresLabel:
			return ignoredLabel
		}
	}
	return 0
}

// allowsHolds reports whether a hold counts on the objects of a ManagedResource.
func (w *world) allowsHolds(mr object) bool {
	allowed, err := strconv.ParseBool(fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationAllowHolds))
	return err == nil && allowed || err != nil && w.scenario.Holds.Allow
}

// sparedNow is what is left alone of an object that somebody wants.
func (w *world) sparedNow(at fake.Key, now time.Time) (surely, perhaps spared, ends time.Time) {
	key, _ := w.keyLocked(thingAt(at))
	own, ownUntil := holdsOf(w.target.GetLocked(key), now)
	own &^= heldAway
	surely = ignoredValue | ignoredLabel | heldParts | holdable
	for _, wish := range w.wanted[at] {
		mr := w.source.GetLocked(wish.mr)
		parts, until := holdsOf(mr, now)
		parts |= w.ignoredBy(mr, at)
		if w.allowsHolds(mr) {
			parts |= own | holdable
			until = latest(until, ownUntil)
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

// noteSparing notes anew what is left alone of all objects. It is called when anything has changed.
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
				if part&heldParts != 0 && s.ends.Before(now) {
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

// lately is what may be left alone of an object, or may have been a while ago, so that it need not be as it is wanted.
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

// heardWithin is how long it may take until every instance goes by what manifests and ManagedResources say: it has heard of that, and has ended what it
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

// certainly is what has been left alone of an object for so long that every instance must have heard of that.
func (w *world) certainly(at fake.Key) (parts spared) {
	s := w.sparing[unscoped(at)]
	for i := range sparedKinds {
		if s.surely&(1<<i) != 0 && time.Since(s.since[i]) >= w.heardWithin() {
			parts |= 1 << i
		}
	}
	return parts
}

// checkSpared is about what an instance writes to an object of which something is left alone. That is certain of parts that all who want it have left alone for
// a while, and of those that the object itself names in the very version that is written over, if holds have counted on it for a while.
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
	if own, until := holdsOf(c.Before, time.Now()); parts&holdable != 0 && c.Before != nil {
		parts |= own &^ heldAway
		why = ", and has a hold until " + until.UTC().Format(time.RFC3339)
	}
	t := thingAt(c.Key)
	switch {
	case c.Verb == "create":
		if since, gone := w.goneSince[at]; gone && parts&heldAway != 0 && w.hadLongBefore(at, since) {
			w.violateLocked(leavesHeld, "%s created %s again, which is gone since %v, and its ManagedResource is left alone", c.By, c.Key, since.Sub(w.begin))
		}
	case c.Verb == "delete":
		if parts&heldParts != 0 && fake.Text(c.Before, "metadata", "deletionTimestamp") == "" {
			w.violateLocked(leavesHeld, "%s deleted %s, of which something is held (%b)%s", c.By, c.Key, parts, why)
		}
	case c.Before == nil || c.After == nil:
	case parts&heldValues != 0 && t.value(c.Before) != t.value(c.After):
		w.violateLocked(leavesHeld, "%s changed %s from %s to %s, whose value is left alone (%b)%s", c.By, c.Key, valueOf(t, c.Before), valueOf(t, c.After), parts, why)
	case parts&heldLabels != 0 && labelOf(c.Before) != labelOf(c.After):
		w.violateLocked(leavesHeld, "%s changed %s from %s to %s, whose label is left alone (%b)%s", c.By, c.Key, valueOf(t, c.Before), valueOf(t, c.After), parts, why)
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

// awaitEnd looks at objects when a hold on them ends, by its time or because somebody ends it (MRF-13).
func (w *world) awaitEnd(c fake.Change, all []fake.Key) {
	now := time.Now()
	was, until := holdsOf(c.Before, now)
	is, ends := holdsOf(c.After, now)
	switch {
	case is != 0 && ends.Sub(now) < shortestWatch && (was != is || !until.Equal(ends)):
	case was != 0 && is == 0:
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

// checkEnded is about an object of which nothing is held since a moment: it has been as it is wanted since then, and says nothing of a hold any more.
func (w *world) checkEnded(at fake.Key, ended time.Time) {
	w.noteSparing()
	key, served := w.keyLocked(thingAt(at))
	s, o, wishes := w.sparing[at], w.target.GetLocked(key), w.wanted[at]
	if o == nil || !served || len(wishes) != 1 || s.perhaps&(heldParts|ignoredValue|ignoredLabel) != 0 || w.touched[at].After(ended) || w.contested[at] {
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
		w.violateLocked(endsHolds, "%s is %s and not %s: nothing of it is held since %v", key, is, wish.value, ended.Sub(w.begin))
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
		if parts, _ := holdsOf(mr, now); parts == 0 && saysHold(mr) {
			w.violateLocked(dropsNoHolds, "%s says that it is held until %q", key, fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationLeaveAloneUntil))
		}
	}
	for at, wishes := range w.wanted {
		key, _ := w.keyLocked(thingAt(at))
		o := w.target.GetLocked(key)
		if parts, _ := holdsOf(o, now); parts != 0 || !saysHold(o) || w.certainly(at)&holdable == 0 {
			continue
		}
		if w.sparing[at].sinceOf(holdable).After(w.touched[at]) {
			continue // It did not count when it was set, and nobody need look at the object since.
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

// apart are a value and a label, without what is spared of them.
func apart(value string, parts spared) string {
	plain, label, _ := strings.Cut(value, "|")
	if parts&heldValues != 0 {
		plain = "*"
	}
	if parts&heldLabels != 0 {
		label = "*"
	}
	return plain + "|" + label
}
