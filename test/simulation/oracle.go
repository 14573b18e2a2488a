package simulation

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/simulation/apiserver"
)

// Invariants by name.
const (
	// safety
	ownsDeleted  = "deletes only what is ours"
	sparesWanted = "deletes nothing that is wanted"
	writesWanted = "writes only what is wanted"
	hasEntry     = "what we create is in an inventory first"
	keepsEntry   = "what is there and ours stays in an inventory"
	// honesty
	doneAsTold    = "what is reported was done"
	conditionTrue = "conditions say what is"
	// liveness
	becomesWanted = "the target becomes what is wanted"
	letsGo        = "what goes away is let go"
	// economy
	comesToRest = "without news no request is sent"
	fewRequests = "requests are bounded"
)

// patience is how long it may take, without any disturbance, until everybody has heard of a change and is done with it.
const patience = 40 * time.Second

// wish is what one ManagedResource wants of one object.
type wish struct {
	mr    apiserver.Key
	value string
	since time.Time
}

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
	// had is when an object last had a value.
	had map[apiserver.Key]map[string]time.Time
	// wanted is what is wanted now, each wish since a time of its own; until is when an object was last wanted.
	wanted map[apiserver.Key][]wish
	// contested objects were wanted by two ManagedResources at once: what they are is not said.
	contested map[apiserver.Key]bool
	// twice are those that one ManagedResource describes twice, which nobody may want. Who has seen one of the descriptions only wants them.
	twice map[apiserver.Key]bool
	until map[apiserver.Key]time.Time
	// versions and forms are the history of Secrets and ManagedResources (by UID and generation).
	versions map[string][]version
	forms    map[string][]form
	servedBy map[string]string
	// kept are objects that a ManagedResource left behind on purpose.
	kept map[apiserver.Key]bool
	// lag is how much longer than usual news may have taken in this run.
	lag      time.Duration
	restored map[string]bool
	// turnedBack is the revision that a cluster was restored to; blind are the resources ("cluster/resource") of which an instance
	// knows what it has from before, and cannot know otherwise: its watch went on from a revision that the restored store took
	// for one of its own. Neither Kubernetes nor etcd tells a client then; the next list does.
	turnedBack map[string]int64
	blind      map[string]bool
	overlapped bool
	healedAt   time.Time
	baseline   int
}

func newOracle(w *world) *oracle {
	return &oracle{
		world: w, classes: map[string]string{}, made: map[string]string{}, released: map[string]bool{}, had: map[apiserver.Key]map[string]time.Time{},
		wanted: map[apiserver.Key][]wish{}, until: map[apiserver.Key]time.Time{},
		versions: map[string][]version{}, forms: map[string][]form{}, servedBy: map[string]string{}, kept: map[apiserver.Key]bool{}, contested: map[apiserver.Key]bool{}, twice: map[apiserver.Key]bool{}, restored: map[string]bool{},
		turnedBack: map[string]int64{}, blind: map[string]bool{},
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

// keyLocked is where a thing is, and whether its kind is served.
func (w *world) keyLocked(t *thing) (apiserver.Key, bool) {
	if t.custom == "" {
		return t.key(t.namespaced), true
	}
	k := w.target.ServedLocked(t.resource)
	return t.key(k != nil && k.Namespaced), k != nil
}

func valueOf(t *thing, o object) string {
	return t.value(o) + "|" + apiserver.Text(o, "metadata", "labels", "sim")
}

func thingAt(key apiserver.Key) *thing {
	for _, t := range things {
		if t.resource == key.GroupResource && t.key(false).Name == key.Name {
			return t
		}
	}
	return nil
}

// wishesLocked is what a ManagedResource wants; ok is false if it can't be said, because a Secret or a kind is missing, or
// because nobody is to look after it at present.
func (w *world) wishesLocked(key apiserver.Key, mr object) (wishes map[apiserver.Key]string, ok bool) {
	spec, _ := mr["spec"].(map[string]any)
	if apiserver.Text(mr, "metadata", "deletionTimestamp") != "" || !w.concernsLocked(mr) {
		return nil, false
	}
	wishes = map[apiserver.Key]string{}
	var twice []apiserver.Key
	label := apiserver.Text(spec, "injectLabels", "sim")
	ok = true
	for _, name := range referencesOf(mr) {
		secret := w.source.GetLocked(apiserver.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: name})
		if secret == nil {
			return nil, false
		}
		data, _ := secret["data"].(map[string]any)
		for _, t := range things {
			text, found := data[t.name+".json"].(string)
			if !found {
				continue
			}
			at, served := w.keyLocked(t)
			if !served {
				ok = false
			}
			if _, found := wishes[at]; found {
				ok, twice = false, append(twice, at)
			}
			wishes[at] = t.valueOfText(text) + "|" + label
		}
	}
	for _, at := range twice {
		delete(wishes, at)               // What is described twice is an error.
		w.contested[unscoped(at)] = true // What another one injected meanwhile may stay on it.
		w.twice[unscoped(at)] = true
	}
	return wishes, ok
}

// concernsLocked says whether an instance that runs is to look after a ManagedResource.
func (w *world) concernsLocked(mr object) bool {
	class := apiserver.Text(mr, "spec", "class")
	return apiserver.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationIgnore) == "" && (class == "" || class == "other" && w.scenario.Classes)
}

func referencesOf(mr object) []string {
	spec, _ := mr["spec"].(map[string]any)
	refs, _ := spec["secretRefs"].([]any)
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, apiserver.Text(ref.(map[string]any), "name"))
	}
	return names
}

// wantLocked computes anew what is wanted.
func (w *world) wantLocked() {
	now := time.Now()
	before, twice := w.wanted, w.twice
	w.wanted, w.twice = map[apiserver.Key][]wish{}, map[apiserver.Key]bool{}
	for key, mr := range w.source.AllLocked() {
		if key.GroupResource != managedResources {
			continue
		}
		wishes, _ := w.wishesLocked(key, mr)
		for at, value := range wishes {
			at = unscoped(at)
			since := now
			if i := slices.IndexFunc(before[at], func(w wish) bool { return w.mr == key }); i >= 0 {
				since = before[at][i].since
			} else if w.inInventoryLocked(at, key) {
				w.contested[at] = true // What its former ManagedResource injected stays on it when it is handed over.
			}
			w.wanted[at] = append(w.wanted[at], wish{key, value, since})
			if len(w.wanted[at]) > 1 {
				w.contested[at] = true
			}
		}
	}
	for at := range before {
		if len(w.wanted[at]) == 0 {
			w.until[at] = now
		}
	}
	for at := range twice {
		w.until[at] = now
	}
}

// wantedLately says whether somebody wanted an object a while ago or does now.
func (o *oracle) wantedLately(key apiserver.Key) bool {
	key = unscoped(key)
	until, found := o.until[key]
	return len(o.wanted[key]) > 0 || o.twice[key] || found && time.Since(until) < patience+o.lag
}

// sourceChanged observes the source.
func (w *world) sourceChanged(c apiserver.Change) {
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
		}
		if isInstance(c.By) {
			w.traceLocked("-- %s %ss %s: %s", c.By, c.Verb, c.Key.Name, later(func() string { return summaryOf(c.After) }))
			w.checkInventory(c)
			w.checkReport(c)
		} else if c.After != nil {
			w.traceLocked("-- %s: %s", c.Key.Name, later(func() string { return marshal(c.After["spec"]) }))
		}
	default:
		return
	}
	w.wantLocked()
}

func (w *world) noteForm(mr object) {
	id := apiserver.Text(mr, "metadata", "uid") + " " + apiserver.Text(mr, "metadata", "generation")
	f := form{since: time.Now(), refs: referencesOf(mr), label: apiserver.Text(mr, "spec", "injectLabels", "sim")}
	for _, known := range w.forms[id] {
		if slices.Equal(known.refs, f.refs) && known.label == f.label {
			return
		}
	}
	w.forms[id] = append(w.forms[id], f)
}

// targetChanged observes the target.
func (w *world) targetChanged(c apiserver.Change) {
	w.poke()
	t := thingAt(c.Key)
	if t == nil {
		return
	}
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
	if !isInstance(c.By) {
		return
	}
	uid := apiserver.Text(c.Before, "metadata", "uid")
	switch c.Verb {
	case "create":
		w.made[apiserver.Text(c.After, "metadata", "uid")] = c.By
		if !w.inInventoryLocked(c.Key, apiserver.Key{}) && !w.excused() {
			w.violateLocked(hasEntry, "%s created %s, which no inventory has", c.By, c.Key)
		}
	case "delete":
		if !w.owned(c.Before) {
			w.violateLocked(ownsDeleted, "%s deleted %s (uid %s): it has no origin of ours, and we did not create it", c.By, c.Key, uid)
		}
		w.checkDeletion(c)
	default:
		if origin(c.Before) != "" && origin(c.After) == "" {
			w.released[uid] = true
		} else if origin(c.After) != "" {
			delete(w.released, uid)
			handedOver := valueOf(t, c.Before) == valueOf(t, c.After) && origin(c.Before) != origin(c.After)
			if !w.wantedLately(c.Key) && !handedOver && apiserver.Text(c.After, "metadata", "deletionTimestamp") == "" && !w.excused() {
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
	text := valueOf(t, o) + " of " + origin(o) + " at " + apiserver.Text(o, "metadata", "resourceVersion")
	if apiserver.Text(o, "metadata", "deletionTimestamp") != "" {
		text += ", being deleted"
	}
	return text
}

// excused says whether something happened after which no engine could know what it knew before.
func (w *world) excused() bool { return w.overlapped || len(w.restored) > 0 }

func origin(o object) string {
	return apiserver.Text(o, "metadata", "annotations", resourcesv1alpha1.AnnotationOrigin)
}

// owned says whether an object may be deleted by us: it says so itself, or we made it and did not give it up.
func (w *world) owned(o object) bool {
	uid := apiserver.Text(o, "metadata", "uid")
	return strings.HasPrefix(origin(o), "simulated:") || w.made[uid] != "" && !w.released[uid]
}

// provable says whether an instance can know that an object is owned. Of one whose origin somebody took away only the instance
// that made it can, and what nobody can prove to be ours stays.
func (w *world) provable(o object, by string) bool {
	return w.owned(o) && (origin(o) != "" || w.made[apiserver.Text(o, "metadata", "uid")] == by)
}

// untold notes that an instance was not told of a creation, so that it cannot know of it but by the origin.
func (w *world) untold(cluster string, r *apiserver.Request) {
	if cluster != "target" || r.Verb != "create" {
		return
	}
	key := r.Key()
	key.Name = apiserver.Text(decode(string(r.Body)), "metadata", "name")
	w.lock.Lock()
	defer w.lock.Unlock()
	if uid := apiserver.Text(w.target.GetLocked(key), "metadata", "uid"); w.made[uid] == r.By {
		w.made[uid] = "untold " + r.By
	}
}

// asked notes what a list or a watch of an instance lets it know after a restore.
func (w *world) asked(cluster, resource, verb, since string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	at, restored := w.turnedBack[cluster]
	revision, err := strconv.ParseInt(since, 10, 64)
	switch {
	case verb == "list":
		delete(w.blind, cluster+"/"+resource)
	case verb == "watch" && restored && err == nil && revision >= at:
		w.blind[cluster+"/"+resource] = true
	}
}

// checkDeletion is about objects that are wanted, have been for a while, and are in the inventory of whoever wants them.
func (w *world) checkDeletion(c apiserver.Change) {
	key := unscoped(c.Key)
	if len(w.wanted[key]) == 0 || c.Before["immutable"] == true || w.excused() ||
		apiserver.Text(c.Before, "metadata", "deletionTimestamp") != "" {
		return
	}
	for _, wish := range w.wanted[key] {
		// Instances of different classes may have different clusters, and do not look after each other's.
		if time.Since(wish.since) >= patience+w.lag && w.classes[c.By] == apiserver.Text(w.source.GetLocked(wish.mr), "spec", "class") && contains(w.inventoryLocked(wish.mr), c.Key) {
			w.violateLocked(sparesWanted, "%s deleted %s, which %s wants and has in its inventory", c.By, c.Key, wish.mr.Name)
			return
		}
	}
}

func (w *world) inventoryLocked(mr apiserver.Key) []apiserver.Key {
	return inventoryOf(w.source.GetLocked(mr))
}

func contains(keys []apiserver.Key, key apiserver.Key) bool {
	return slices.ContainsFunc(keys, func(k apiserver.Key) bool { return same(k, key) })
}

// same compares keys; the namespace of a kind whose scope changes is none where a manifest or an old entry has one.
func same(a, b apiserver.Key) bool { return unscoped(a) == unscoped(b) }

func unscoped(key apiserver.Key) apiserver.Key {
	if key.Group == "things.example.org" {
		key.Namespace = ""
	}
	return key
}

func inventoryOf(mr object) []apiserver.Key {
	status, _ := mr["status"].(map[string]any)
	resources, _ := status["resources"].([]any)
	keys := make([]apiserver.Key, 0, len(resources))
	for _, entry := range resources {
		ref := entry.(map[string]any)
		for _, t := range things {
			if t.kind == ref["kind"] && t.objectName == ref["name"] {
				keys = append(keys, apiserver.Key{GroupResource: t.resource, Namespace: apiserver.Text(ref, "namespace"), Name: apiserver.Text(ref, "name")})
			}
		}
	}
	return keys
}

// inInventoryLocked says whether an inventory has an object, but for that of one ManagedResource.
func (w *world) inInventoryLocked(key, except apiserver.Key) bool {
	for mrKey, mr := range w.source.AllLocked() {
		if mrKey.GroupResource == managedResources && mrKey != except && contains(inventoryOf(mr), key) {
			return true
		}
	}
	return false
}

// checkInventory is about what left the inventory with a write, or with the whole ManagedResource.
func (w *world) checkInventory(c apiserver.Change) {
	if c.Before == nil || w.excused() {
		return
	}
	is := inventoryOf(c.After)
	if c.After == nil && apiserver.Text(c.Before, "spec", "keepObjects") == "true" {
		for _, key := range inventoryOf(c.Before) {
			w.kept[unscoped(key)] = true
		}
		return
	}
	for _, key := range inventoryOf(c.Before) {
		if t := thingAt(key); t != nil {
			key, _ = w.keyLocked(t) // An entry may be older than the scope of its kind.
		}
		o := w.target.GetLocked(key)
		if w.scenario.Classes && w.contested[unscoped(key)] {
			continue // Two instances that give up an object at the same moment may each leave it to the other.
		}
		if contains(is, key) || o == nil || !w.provable(o, c.By) || w.inInventoryLocked(key, c.Key) {
			continue
		}
		if !strings.HasSuffix(origin(o), "/"+c.Key.Name) && origin(o) != "" {
			continue // Another ManagedResource has it by now, or says so.
		}
		w.violateLocked(keepsEntry, "%s removed %s from the inventory of %s, and it is there", c.By, key, c.Key.Name)
	}
}

// checkReport is about a status that says that something was done: there was a moment, since that was asked for, at which
// each object was as it says.
func (w *world) checkReport(c apiserver.Change) {
	if c.Before == nil || c.After == nil {
		return
	}
	checksum, generation := apiserver.Text(c.After, "status", "secretsDataChecksum"), apiserver.Text(c.After, "status", "observedGeneration")
	was := condition(c.Before, "ResourcesApplied")
	is := condition(c.After, "ResourcesApplied")
	news := checksum != apiserver.Text(c.Before, "status", "secretsDataChecksum") || generation != apiserver.Text(c.Before, "status", "observedGeneration")
	if is != "True" || was == "True" && !news || checksum == "" {
		return
	}
	var reasons []string
	id := apiserver.Text(c.After, "metadata", "uid") + " " + generation
	for _, f := range w.forms[id] {
		for _, versions := range w.combinations(f.refs) {
			if sum(f.refs, versions) != checksum {
				continue
			}
			missing := w.missing(c.Key, f, versions)
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

// summaryOf is what matters of a ManagedResource.
func summaryOf(mr object) string {
	if mr == nil {
		return "gone"
	}
	text := fmt.Sprintf("generation %s, observed %s, checksum %.6s, finalizers %v, inventory", apiserver.Text(mr, "metadata", "generation"),
		apiserver.Text(mr, "status", "observedGeneration"), apiserver.Text(mr, "status", "secretsDataChecksum"), apiserver.Meta(mr)["finalizers"])
	for _, key := range inventoryOf(mr) {
		text += " " + key.Name
	}
	for _, name := range []string{"ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing"} {
		text += fmt.Sprintf(", %s %s", name, condition(mr, name))
	}
	return text
}

func condition(mr object, name string) string {
	status, _ := mr["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, entry := range conditions {
		if c := entry.(map[string]any); c["type"] == name {
			return apiserver.Text(c, "status")
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

// lastHad is when an object last had a value. After a restore of the source any injected label will do: what a form injected that
// the source does not know of any more stays, as no inventory tells whose it is.
func (w *world) lastHad(key apiserver.Key, value string) time.Time {
	last := w.had[key][value]
	if w.restored["source"] {
		plain, _, _ := strings.Cut(value, "|")
		for had, at := range w.had[key] {
			if strings.HasPrefix(had, plain+"|") && at.After(last) {
				last = at
			}
		}
	}
	return last
}

// missing names an object that never was as a content says since the content is there; "" if there is none.
func (w *world) missing(mr apiserver.Key, f form, versions []version) string {
	wishes, since := map[*thing]string{}, f.since
	for _, v := range versions {
		for _, t := range things {
			if text, found := v.data[t.name+".json"].(string); found {
				if _, twice := wishes[t]; twice {
					return ""
				}
				wishes[t] = t.valueOfText(text) + "|" + f.label
			}
		}
	}
	for t, value := range wishes {
		key, served := w.keyLocked(t)
		if !served {
			continue
		}
		o := w.target.GetLocked(key)
		if o != nil && valueOf(t, o) == value || w.contested[unscoped(key)] || w.inInventoryLocked(key, mr) {
			continue // It is so, or another ManagedResource may want it otherwise.
		}
		// The kind may have been served with another scope a moment ago.
		at := w.lastHad(key, value)
		if t.custom != "" {
			for _, namespaced := range []bool{true, false} {
				if other := w.lastHad(t.key(namespaced), value); other.After(at) {
					at = other
				}
			}
		}
		if at.IsZero() || at.Before(since) {
			return fmt.Sprintf("%s never had %s", key, value)
		}
	}
	return ""
}
