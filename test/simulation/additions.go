package simulation

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// additions are what about half of the scenarios have besides. They are drawn last: but for them the scenario of a seed is what it was
// before there were any.
type additions struct {
	On bool
	// Audit is the period of the audit.
	Audit time.Duration
	// Refused is the number of the thing whose updates are refused while faults last, unless an instance created it.
	Refused int
	// Children is true if the target has a controller that makes ReplicaSets of Deployments.
	Children bool
	// Delay is that of repairs, WhilePending whether new objects are applied while old ones are not gone.
	Delay        time.Duration
	WhilePending bool
}

func (a additions) String() string {
	return fmt.Sprintf("  besides: audit %v, refused %s, children %t, repairs after %v, applying while a deletion is pending %t\n",
		a.Audit, things[a.Refused].name, a.Children, a.Delay, a.WhilePending)
}

var moreKinds = []string{
	"secret-modes", "secret-modes", "secret-modes", "copy", "copy", "annotate", "claim", "claim", "take-finalizer", "keep-live", "pause",
	"drift", "drift-delete", "create", "hold", "strip", "keep", "mr-recreate", "mr", "class",
}

// drawMore draws what the scenario has besides.
func drawMore(t *rapid.T, s *Scenario) {
	if !rapid.Bool().Draw(t, "more") {
		return
	}
	s.More = additions{On: true, Audit: rapid.SampledFrom([]time.Duration{0, 0, 40 * time.Second}).Draw(t, "audit")}
	_ = rapid.Bool().Draw(t, "nothing") // Without it, seeds would draw other scenarios than those that the corpus names.
	s.More.Refused, s.More.Children = rapid.IntRange(0, len(things)-1).Draw(t, "refused"), rapid.Bool().Draw(t, "children")
	if rapid.IntRange(0, 2).Draw(t, "with modes") == 0 {
		for i := range s.Secrets {
			s.Secrets[i] = drawModes(t, s.Secrets[i])
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "more steps") {
		step := Step{
			Wait: rapid.SampledFrom(waits).Draw(t, "wait"), Do: rapid.SampledFrom(moreKinds).Draw(t, "do"),
			A: rapid.IntRange(0, 8).Draw(t, "a"), B: rapid.IntRange(0, 8).Draw(t, "b"),
		}
		if step.Do == "secret-modes" {
			step.Content = drawModes(t, drawContent(t, []string{"first", "second"}[step.A%2]))
		}
		s.Steps = slices.Insert(s.Steps, rapid.IntRange(0, len(s.Steps)).Draw(t, "before"), step)
	}
	s.More.Delay = rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 90 * time.Second}).Draw(t, "delay")
	s.More.WhilePending = rapid.Bool().Draw(t, "while pending")
}

// drawModes lets some objects of a content have annotations that say what may be done with them.
func drawModes(t *rapid.T, c content) content {
	moded := content{}
	for i := range things {
		if value, found := c[i]; found {
			mode := rapid.SampledFrom([]int{plain, plain, createdOnce, notOurs, keptObject}).Draw(t, "mode of "+things[i].name)
			moded[i] = value + mostValues*mode
		}
	}
	return moded
}

// takeMore lets a step happen that only additions have.
func (w *world) takeMore(step Step, t *thing) {
	switch step.Do {
	case "secret-modes":
		w.takeSecret(step.A%2, step.Content)
	case "copy":
		w.copyThing(t)
	case "annotate":
		times := 1
		if step.B%3 == 0 {
			times = 12
		}
		w.rebooting.Go(func() {
			for i := range times {
				w.annotateThing(t, note, strconv.Itoa(i+step.B))
				time.Sleep(200 * time.Millisecond)
			}
		})
	case "claim":
		if t.name == "fixed" {
			return // Its claim shows only in its deletion, so that it can be created anew.
		}
		w.annotateThing(t, resourcesv1alpha1.AnnotationOrigin, "elsewhere:garden/"+mrKey(step.B%3).Name)
	case "take-finalizer":
		mr := mrKey(step.A % 3)
		w.lock.Lock()
		w.freed = true
		w.lock.Unlock()
		w.request(w.source, http.MethodPatch, w.pathOf(w.source, mr), object{"metadata": object{"finalizers": nil}})
	case "keep-live":
		if t.name == "fixed" {
			return // It could never become what is wanted.
		}
		w.annotateThing(t, resourcesv1alpha1.AnnotationKeepObject, []any{"true", nil}[step.B%2])
	case "pause":
		time.Sleep(90 * time.Second)
	default:
		panic("unknown step " + step.Do)
	}
}

// note is an annotation that is nobody's but somebody's.
const note = "example.org/note"

func (w *world) annotateThing(t *thing, name string, value any) {
	key := w.keyOf(t)
	w.request(w.target, http.MethodPatch, w.pathOf(w.target, key), object{"metadata": object{"annotations": object{name: value}}})
}

// copyPrefix begins the names of objects that somebody copied.
const copyPrefix = "copy-of-"

// copyThing makes another object of one, with its labels and annotations, as whoever applies a dump under another name does.
func (w *world) copyThing(t *thing) {
	key := w.keyOf(t)
	o := w.get(w.target, key)
	if o == nil || t.resource == crdResource { // Its name is its kind's.
		return
	}
	o = runtime.DeepCopyJSON(o)
	metadata := object{"name": copyPrefix + key.Name}
	for _, name := range []string{"labels", "annotations", "namespace"} {
		if value, found := fake.Meta(o)[name]; found {
			metadata[name] = value
		}
	}
	o["metadata"] = metadata
	key.Name = ""
	w.request(w.target, http.MethodPost, w.pathOf(w.target, key), o)
}

// replaceable reports whether somebody who runs and looks after a class can prove that an object is ours, so that it may be deleted to be created anew. What
// is to be kept may not, whether it says so itself or its manifest does. Only the creator of an object without an origin can prove that it is ours, and not that
// one after it left the object alone for a while, or after the target was restored to what was before it created another one.
func (w *world) replaceable(key fake.Key, o object, class string) bool {
	if !w.owned(o) || truthy(o, resourcesv1alpha1.AnnotationKeepObject) || w.toKeep[unscoped(key)] {
		return false
	}
	uid := fake.Text(o, "metadata", "uid")
	maker := w.made[uid]
	return origin(o) != "" || slices.Contains(w.running, maker) && w.classes[maker] == class && !w.doubtful[uid] && !w.restored["target"] && !w.scenario.leavesAlone()
}

// leavesAlone reports whether instances are told to leave objects alone for a while: then they forget what they knew of them.
func (s *Scenario) leavesAlone() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Do == "ignore" })
}

// refuses reports whether the target refuses a request of an instance: somebody protects an object that was there before.
func (w *world) refuses(cluster string, r *fake.Request) bool {
	if !w.scenario.More.On || cluster != "target" || r.Verb != "update" && r.Verb != "patch" {
		return false
	}
	w.mu.Lock()
	healed := w.healed
	w.mu.Unlock()
	w.lock.Lock()
	defer w.lock.Unlock()
	o := w.target.GetLocked(r.Key())
	return !healed && o != nil && thingAt(r.Key()) == things[w.scenario.More.Refused] && w.made[fake.Text(o, "metadata", "uid")] == ""
}

// makeReplicaSet is what the controller of Deployments does: their ReplicaSets have their annotations, and the labels of their Pods.
func (w *world) makeReplicaSet(key fake.Key, deployment object, objects map[fake.Key]object) {
	if !w.scenario.More.Children || fake.Text(deployment, "metadata", "deletionTimestamp") != "" {
		return
	}
	spec, _ := deployment["spec"].(map[string]any)
	template := runtime.DeepCopyJSON(spec["template"].(map[string]any))
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(marshal(template)))
	hash := fmt.Sprintf("%08x", digest.Sum32())
	labels, _ := fake.Meta(template)["labels"].(map[string]any)
	labels = runtime.DeepCopyJSON(labels)
	labels["pod-template-hash"] = hash
	fake.Meta(template)["labels"] = labels
	at := fake.Key{GroupResource: replicaSets, Namespace: key.Namespace, Name: key.Name + "-" + hash}
	set := object{
		"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": object{"name": at.Name, "labels": labels, "annotations": fake.Meta(deployment)["annotations"], "ownerReferences": []any{object{
			"apiVersion": "apps/v1", "kind": "Deployment", "name": key.Name, "uid": fake.Text(deployment, "metadata", "uid"), "controller": true, "blockOwnerDeletion": true,
		}}},
		"spec": object{"replicas": 0, "selector": object{"matchLabels": labels}, "template": template},
	}
	if is := objects[at]; is == nil {
		at.Name = ""
		w.request(w.target, http.MethodPost, w.pathOf(w.target, at), set)
	} else if annotations := fake.Meta(set)["annotations"]; marshal(annotations) != marshal(fake.Meta(is)["annotations"]) && annotations != nil {
		w.request(w.target, http.MethodPatch, w.pathOf(w.target, at), object{"metadata": object{"annotations": annotations}})
	}
}

// collectChildren deletes what belongs to an object that is gone.
func (w *world) collectChildren(key fake.Key, o object, objects map[fake.Key]object) {
	owners, _ := fake.Meta(o)["ownerReferences"].([]any)
	if len(owners) == 0 {
		return
	}
	owner := owners[0].(map[string]any)
	at := fake.Key{GroupResource: deploymentResource, Namespace: key.Namespace, Name: fake.Text(owner, "name")}
	if is := objects[at]; is == nil || fake.Text(is, "metadata", "uid") != owner["uid"] {
		w.request(w.target, http.MethodDelete, w.pathOf(w.target, key), nil)
	}
}

// checkStranger is about what an instance writes that no manifest ever had: copies of what is ours, and what controllers of the target make of it.
func (w *world) checkStranger(c fake.Change) {
	if isInstance(c.By) {
		w.violateLocked(sparesCopies, "%s %ss %s, which no manifest ever had", c.By, c.Verb, c.Key)
	}
}

// checkEvent is about what instances tell.
func (w *world) checkEvent(c fake.Change) {
	message := fake.Text(c.After, "message")
	if fake.Text(c.After, "reason") == "OrphansFound" && (strings.Contains(message, copyPrefix) || strings.Contains(message, "ReplicaSet")) {
		w.violateLocked(sparesCopies, "%s reports an orphan that is none: %s", c.By, message)
	}
}

// noteKept notes the objects that a ManagedResource leaves behind on purpose when it goes, by their UIDs: nobody may delete them,
// unless another one has them later.
func (w *world) noteKept(c fake.Change) {
	for _, key := range inventoryOf(c.Before) {
		if t := thingAt(key); t != nil {
			key, _ = w.keyLocked(t)
		}
		w.kept[unscoped(key)] = true
		o := w.target.GetLocked(key)
		if o == nil {
			continue
		}
		uid := fake.Text(o, "metadata", "uid")
		w.doubtful[uid] = true // The entry may have been the only proof but for an origin, whoever else has one.
		if !w.inInventoryLocked(key, c.Key) {
			w.leftBehind[uid], w.leftAt[uid] = true, time.Now()
			w.released[uid] = w.released[uid] || origin(o) == ""
		}
	}
}

// noteTaken notes what is in an inventory again.
func (w *world) noteTaken(mr object) {
	if len(w.leftBehind) == 0 {
		return
	}
	for _, key := range inventoryOf(mr) {
		if t := thingAt(key); t != nil {
			key, _ = w.keyLocked(t)
		}
		delete(w.leftBehind, fake.Text(w.target.GetLocked(key), "metadata", "uid"))
	}
}

func truthy(o object, annotation string) bool {
	value, err := strconv.ParseBool(fake.Text(o, "metadata", "annotations", annotation))
	return err == nil && value
}

// keeps reports whether an object says that it stays, or did a moment ago.
func (w *world) keeps(o object) bool {
	at, found := w.saidToStay[fake.Text(o, "metadata", "uid")]
	return truthy(o, resourcesv1alpha1.AnnotationKeepObject) || found && time.Since(at) < patience+w.lag
}
