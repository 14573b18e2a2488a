package simulation

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-project/espalier/test/fake"
)

func (w *world) noteForm(mr object) {
	id := fake.Text(mr, "metadata", "uid") + " " + fake.Text(mr, "metadata", "generation")
	f := form{since: time.Now(), refs: referencesOf(mr), label: fake.Text(mr, "spec", "injectLabels", "sim")}
	for _, known := range w.forms[id] {
		if slices.Equal(known.refs, f.refs) && known.label == f.label {
			return
		}
	}
	w.forms[id] = append(w.forms[id], f)
}

// checkReport is about a status that says that something was done: there was a moment, since that was asked for, at which
// each object was as it says.
func (w *world) checkReport(c fake.Change) {
	if c.Before == nil || c.After == nil {
		return
	}
	checksum, generation := fake.Text(c.After, "status", "secretsDataChecksum"), fake.Text(c.After, "status", "observedGeneration")
	was := condition(c.Before, "ResourcesApplied")
	is := condition(c.After, "ResourcesApplied")
	news := checksum != fake.Text(c.Before, "status", "secretsDataChecksum") || generation != fake.Text(c.Before, "status", "observedGeneration")
	if is != "True" || was == "True" && !news || checksum == "" {
		return
	}
	if w.sourceTurnedBack() {
		return
	}
	var reasons []string
	id := fake.Text(c.After, "metadata", "uid") + " " + generation
	for _, f := range w.forms[id] {
		for _, versions := range w.combinations(f.refs) {
			if sum(f.refs, versions) != checksum {
				continue
			}
			missing := w.missing(c, f, versions)
			if missing == "" {
				return
			}
			reasons = append(reasons, missing)
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"no content of these Secrets has this checksum"}
	}
	w.violateLocked(doneAsTold, "%s reported that generation %s of %s with checksum %.8s is applied: %s", c.By, generation, c.Key.Name, checksum, strings.Join(reasons, "; "))
}

// sourceTurnedBack reports whether a write to the source may be meant for what had the same resource version before a restore.
func (w *world) sourceTurnedBack() bool {
	return w.restored["source"] && time.Since(w.restoredAt["source"]) < patience+w.lag
}

// summaryOf is what matters of a ManagedResource.
func summaryOf(mr object) string {
	if mr == nil {
		return "gone"
	}
	text := fmt.Sprintf("generation %s, observed %s, checksum %.6s, finalizers %v, inventory", fake.Text(mr, "metadata", "generation"),
		fake.Text(mr, "status", "observedGeneration"), fake.Text(mr, "status", "secretsDataChecksum"), fake.Meta(mr)["finalizers"])
	for _, key := range inventoryOf(mr) {
		text += " " + strings.TrimPrefix(key.Namespace+"/"+key.Name, "/")
	}
	for _, name := range []string{"ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing"} {
		text += fmt.Sprintf(", %s %s", name, condition(mr, name))
	}
	return text
}

func condition(mr object, name string) string { return conditionField(mr, name, "status") }

func conditionField(mr object, name, field string) string {
	status, _ := mr["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, entry := range conditions {
		if c := entry.(map[string]any); c["type"] == name {
			return fake.Text(c, field)
		}
	}
	return ""
}

// combinations are all contents that Secrets may have been read with.
func (o *oracle) combinations(refs []string) [][]version {
	result := [][]version{nil}
	for _, name := range refs {
		var longer [][]version
		for _, prefix := range result {
			for _, v := range o.versions[name] {
				if v.data != nil {
					longer = append(longer, append(slices.Clone(prefix), v))
				}
			}
		}
		result = longer
	}
	return result
}

// sum is the checksum of Secrets with one object each value (MRD-17).
func sum(refs []string, versions []version) string {
	digest := sha256.New()
	for i := range refs {
		for _, key := range sortedNames(versions[i].data) {
			if notOursTexts[versions[i].data[key].(string)] {
				continue // It is not applied, and does not count (MRO-1).
			}
			raw, _ := base64.StdEncoding.DecodeString(versions[i].data[key].(string))
			digest.Write(raw)
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

func sortedNames(data map[string]any) []string {
	names := make([]string, 0, len(data))
	for name := range data {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// noteValues notes what the objects of the target are like now, before a restore takes that back.
func (w *world) noteValues() {
	for key, o := range w.target.AllLocked() {
		if t := thingAt(key); t != nil && w.had[key] != nil {
			w.had[key][valueOf(t, o)] = time.Now()
		}
	}
}

// lastHad is when an object last had a value, or one that differs from it only by what was injected.
func (w *world) lastHad(key fake.Key, value string, anyLabel bool) time.Time {
	last := w.had[key][value]
	for had, at := range w.had[key] {
		if at.After(last) && (value == anything || anyLabel && unlabelled(had) == unlabelled(value)) {
			last = at
		}
	}
	return last
}

// slowestRepair is the longest time that an object may be left as it is that was fought over, and quietAfter how long after that has ended (MRB-34).
const slowestRepair, quietAfter = 30 * time.Second, 10 * time.Minute

// mayBeHeld reports whether what was as it should be until a moment may be left so: repairs are delayed, somebody fought over it, or a restore of the
// target is not known yet.
func (w *world) mayBeHeld(key fake.Key, until time.Time) bool {
	delay := w.scenario.More.Delay
	if at, found := w.fought[unscoped(key)]; found && time.Since(at) < quietAfter+delay+patience+w.lag {
		delay = max(delay, slowestRepair)
	}
	return (delay > 0 || w.restored["target"]) && time.Since(until) <= delay+patience+w.lag
}

// isKept reports whether a status says of an object that another ManagedResource keeps it, and that one has it in its inventory, or had it lately (MRB-16).
func (w *world) isKept(mr object, name, key fake.Key) bool {
	keeper, found := keeperIn(mr, name, key)
	lately := time.Since(w.stirred[unscoped(key)]) < patience+w.lag
	return found && keeper != name && (lately || contains(w.inventoryLocked(keeper), key))
}

// keeperIn is the ManagedResource that keeps an object, as the status of another one says.
func keeperIn(mr object, name, key fake.Key) (keeper fake.Key, found bool) {
	message, after := conditionField(mr, "ResourcesApplied", "message"), ""
	for _, scope := range []bool{true, false} { // Its kind may have changed its scope since the plan.
		at := thingAt(key).key(scope)
		if !found {
			_, after, found = strings.Cut(message, fmt.Sprintf("%s %s/%s by %s/", thingAt(key).kind, at.Namespace, at.Name, name.Namespace))
		}
	}
	if keeper = name; found {
		keeper.Name = after[:strings.IndexAny(after, ",. ")]
	}
	return keeper, found
}

// missing names an object that never was as a content says since the content is there; "" if there is none.
func (w *world) missing(c fake.Change, f form, versions []version) string {
	wishes, since := map[*thing]string{}, f.since
	described := map[*thing]bool{}
	for _, v := range versions {
		for _, t := range things {
			if text, found := v.data[t.name+".json"].(string); found {
				if described[t] {
					return ""
				}
				described[t] = true
				switch t.modes[text] {
				case notOurs:
				case createdOnce:
					wishes[t] = anything
				default:
					wishes[t] = t.valueOfText(text) + "|" + f.label
				}
			}
		}
	}
	for t, value := range wishes {
		key, served := w.keyLocked(t)
		if !served || w.excused() {
			continue
		}
		// Labels that another ManagedResource injected may be on it. After a restore of the source so may be what a form injected that the source does not
		// know of any more, as no inventory tells whose it is.
		if w.lately(key)&held != 0 {
			continue
		}
		if w.isKept(c.After, c.Key, key) {
			continue
		}
		shared := w.contested[unscoped(key)] || w.inInventoryLocked(key, c.Key)
		o := w.target.GetLocked(key)
		if at, found := w.fought[unscoped(key)]; w.isFoughtOver(key) || found && time.Since(at) < patience+w.lag {
			continue // Instances of two classes take turns.
		}
		if o != nil && (value == anything || valueOf(t, o) == value || shared && unlabelled(valueOf(t, o)) == unlabelled(value)) {
			continue
		}
		anyLabel := shared || w.restored["source"]
		at := w.lastHad(key, value, anyLabel)
		if t.custom != "" {
			// The kind may have been served with another scope a moment ago.
			for _, namespaced := range []bool{true, false} {
				if other := w.lastHad(t.key(namespaced), value, anyLabel); other.After(at) {
					at = other
				}
			}
		}
		// A change that a watch has not told of yet may have happened just before the form came. Another one that creates the object only once may have
		// made it anew: that is drift of what was as it should be.
		if at.IsZero() || at.Before(since.Add(-w.newsWithin())) && !w.mayBeHeld(key, w.lastHad(key, anything, true)) {
			return fmt.Sprintf("%s is %s, and never had %s", key, summary(t, o), value)
		}
	}
	return ""
}
