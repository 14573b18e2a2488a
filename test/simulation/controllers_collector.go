package simulation

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
	"github.com/espalier-project/espalier/internal/marked"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants of the garbage collector.
const (
	collectsUnused   = "nothing is collected that was referred to at the last look"
	collectsOld      = "nothing is collected before its time"
	collectsMarked   = "nothing is collected that is not marked"
	collectsAll      = "an incomplete view collects nothing"
	becomesCollected = "garbage is collected"
	marksFirst       = "nothing is collected that was not marked for long enough"
	leavesTouched    = "nothing is collected that was touched after it was marked for deletion"
	marksOnly        = "a mark changes nothing else"
	keepsPassed      = "nothing is collected to which a referrer refers that passed an instance"
	endsUnmarked     = "what is referred to is not marked for deletion in the end"
)

const (
	collectorPeriod = time.Minute
	collectorAge    = 90 * time.Second
	// refersTo is where a holder says for the oracle what it refers to in its own way.
	refersTo = "example.org/refers-to"
)

// collector is a world of ConfigMaps and Secrets that come and go, and of those that refer to them.
type collector struct {
	*stage
	referred since
	// marks are the versions of objects that instances marked; passed are the referrers that passed an instance, by reference.
	marks  map[fake.Key]string
	passed map[fake.Key]bool
}

func newCollector(s *stage) act {
	return &collector{stage: s, referred: since{}, marks: map[fake.Key]string{}, passed: map[fake.Key]bool{}}
}

func (c *collector) configure(cfg *config.ResourceManagerConfiguration) {
	cfg.Controllers.GarbageCollector = config.GarbageCollectorControllerConfig{
		Enabled: true, SyncPeriod: &metav1.Duration{Duration: collectorPeriod}, MinimumAge: &metav1.Duration{Duration: collectorAge}, ScanPodSpecs: ptr.To(true),
	}
}

// litterKeys are what may be collected.
var litterKeys = []fake.Key{
	keyOf("", "configmaps", targetNamespace, "c0"), keyOf("", "configmaps", targetNamespace, "c1"), keyOf("", "configmaps", "kube-system", "c0"), keyOf("", "secrets", targetNamespace, "s0"),
}

// holderKeys may refer to what is in their namespace.
var holderKeys = []fake.Key{
	keyOf("apps", "deployments", targetNamespace, "h"), keyOf("", "pods", targetNamespace, "h"), keyOf("apps", "replicasets", targetNamespace, "h"), keyOf("batch", "cronjobs", targetNamespace, "h"),
	keyOf("apps", "daemonsets", "kube-system", "h"), keyOf("batch", "jobs", "kube-system", "h"), keyOf("apps", "statefulsets", targetNamespace, "h"),
}

func (c *collector) populate() {
	for i := range litterKeys {
		c.do(Step{Do: "make", A: i})
	}
	c.do(Step{Do: "refer", A: 0, B: 0})
}

func (c *collector) do(step Step) {
	key, holder := litterKeys[step.A%len(litterKeys)], holderKeys[step.B%len(holderKeys)]
	switch step.Do {
	case "make":
		label := []string{"true", "true", "true", "True", "false"}[step.B%5]
		at := key
		at.Name = ""
		o := object{"metadata": object{"name": key.Name, "labels": object{"resources.gardener.cloud/garbage-collectable-reference": label}}}
		c.request(c.target, "POST", c.pathOf(c.target, at), o)
	case "remake":
		c.remove(c.target, key)
		c.do(Step{Do: "make", A: step.A, B: step.B})
	case "touch":
		c.patch(c.target, key, object{"metadata": object{"annotations": object{"touched": fmt.Sprint(step.B)}}})
	case "refer":
		c.put(c.target, holder, referring(holder, key, step.A+step.B))
	case "pass":
		c.pass(holder, key, step.A+step.B)
	case "unrefer":
		c.remove(c.target, holder)
	}
}

// pass lets a referrer pass the leader before it is written, as an object that the engine applies does, or one that a webhook admits. It counts as
// passed if what it refers to is there then, and is not marked for deletion.
func (c *collector) pass(holder, key fake.Key, way int) {
	key.Namespace = holder.Namespace
	c.mu.Lock()
	name := ""
	if c.leader != nil {
		name = c.leader.name
	}
	c.mu.Unlock()
	c.hearing.Lock()
	process := c.processes[name]
	c.hearing.Unlock()
	if process == nil {
		return
	}
	passing := c.passThrough(process.Marked, key)
	if c.put(c.target, holder, referring(holder, key, way)); passing {
		c.lock.Lock()
		c.passed[heldKey(holder, key)] = true
		c.lock.Unlock()
	}
}

// passThrough reports whether what a referrer refers to is there and not marked once it has passed.
func (c *collector) passThrough(set *marked.Set, key fake.Key) bool {
	kind := references.ConfigMap
	if key.Resource == "secrets" {
		kind = references.Secret
	}
	set.Refers(context.Background(), marked.ByEngine, key.Namespace, func() []references.Reference {
		return []references.Reference{{Kind: kind, Name: key.Name}}
	})
	c.lock.Lock()
	defer c.lock.Unlock()
	o := c.target.GetLocked(key)
	return o != nil && fake.Text(o, "metadata", "labels", "resources.gardener.cloud/condemned") == ""
}

// referring returns a holder that refers to what has the name of the key in the namespace of the holder, in one of several ways.
func referring(holder, key fake.Key, way int) object {
	kind, field, name := "configmap", "configMap", key.Name
	from, by := "configMapRef", "name"
	if key.Resource == "secrets" {
		kind, field, from, by = "secret", "secret", "secretRef", "secretName"
	}
	container := object{"name": "c", "image": "i"}
	pod := object{"containers": []any{container}}
	annotations := object{refersTo: holder.Namespace + "/" + key.Resource + "/" + name}
	if holder.Resource == "replicasets" {
		way = 1 + way%3 // An annotation of its own is copied from the Deployment, and says nothing.
	}
	switch way % 4 {
	case 0:
		annotations["reference.resources.gardener.cloud/"+kind+"-12345678"] = name
	case 1:
		pod["volumes"] = []any{object{"name": "v", field: object{by: name}}}
	case 2:
		container["envFrom"] = []any{object{from: object{"name": name}}}
	case 3:
		pod["initContainers"] = []any{object{"name": "i", "image": "i", "envFrom": []any{object{from: object{"name": name}}}}}
	}
	o := object{"metadata": object{"annotations": annotations}}
	template := object{"metadata": object{"labels": object{"app": "h"}}, "spec": pod}
	selector := object{"matchLabels": object{"app": "h"}}
	switch holder.Resource {
	case "pods":
		o["spec"] = pod
	case "cronjobs":
		o["spec"] = object{"schedule": "* * * * *", "jobTemplate": object{"spec": object{"template": template}}}
	default:
		o["spec"] = object{"selector": selector, "template": template}
	}
	return o
}

// holdersOf are the holders that refer to what has the key.
func (c *collector) holdersOf(key fake.Key) []fake.Key {
	var all []fake.Key
	for _, holder := range holderKeys {
		if fake.Text(c.target.GetLocked(holder), "metadata", "annotations", refersTo) == key.Namespace+"/"+key.Resource+"/"+key.Name {
			all = append(all, holder)
		}
	}
	return all
}

// heldKey names a reference: who refers to what.
func heldKey(holder, key fake.Key) fake.Key {
	holder.Name += " to " + key.String()
	return holder
}

func (c *collector) look() {
	for _, key := range litterKeys {
		held := map[fake.Key]bool{}
		for _, holder := range c.holdersOf(key) {
			held[holder] = true
		}
		for _, holder := range holderKeys {
			c.referred.note(heldKey(holder, key), held[holder])
			if !held[holder] {
				delete(c.passed, heldKey(holder, key))
			}
		}
		// A restore may bring a version back from before the mark.
		if version := fake.Text(c.target.GetLocked(key), "metadata", "resourceVersion"); len(version) < len(c.marks[key]) || len(version) == len(c.marks[key]) && version < c.marks[key] {
			delete(c.marks, key)
		}
	}
}

func (c *collector) changed(cluster string, change fake.Change) {
	if !isInstance(change.By) {
		return
	}
	if cluster != "target" || change.Key.Resource != "configmaps" && change.Key.Resource != "secrets" {
		c.violateLocked(collectsMarked, "%s %ss %s in the %s", change.By, change.Verb, change.Key, cluster)
		return
	}
	switch change.Verb {
	case "patch":
		c.marked(change)
	case "delete":
		c.deleted(change)
	default:
		c.violateLocked(marksOnly, "%s %ss %s", change.By, change.Verb, change.Key)
	}
}

const (
	condemnedLabel = "resources.gardener.cloud/condemned"
	condemnedAt    = "resources.gardener.cloud/condemned-at"
)

// marked judges a mark, or one that is removed.
func (c *collector) marked(change fake.Change) {
	if other := onlyChanges(change, "metadata labels "+condemnedLabel, "metadata annotations "+condemnedAt, "metadata annotations resources.gardener.cloud/condemned-as"); other != "" {
		c.violateLocked(marksOnly, "%s patches %s: %s", change.By, change.Key, other)
	}
	if fake.Text(change.After, "metadata", "labels", condemnedLabel) == "" {
		delete(c.marks, change.Key)
		return
	}
	c.marks[change.Key] = fake.Text(change.After, "metadata", "resourceVersion")
	c.judged(change)
}

// deleted judges a deletion.
func (c *collector) deleted(change fake.Change) {
	at, err := time.Parse(time.RFC3339Nano, fake.Text(change.Before, "metadata", "annotations", condemnedAt))
	if grace := internalreferences.Grace(collectorPeriod); err != nil || time.Since(at) < grace {
		c.violateLocked(marksFirst, "%s deleted %s, which was marked for deletion at %v (%v)", change.By, change.Key, at, err)
	}
	version := fake.Text(change.Before, "metadata", "resourceVersion")
	if mark := c.marks[change.Key]; mark != "" && mark != version {
		c.violateLocked(leavesTouched, "%s deleted version %s of %s, which was marked for deletion in version %s", change.By, version, change.Key, mark)
	}
	for _, holder := range c.holdersOf(change.Key) {
		if c.passed[heldKey(holder, change.Key)] {
			c.violateLocked(keepsPassed, "%s deleted %s, to which %s refers", change.By, change.Key, holder)
		}
	}
	c.judged(change)
}

// judged judges a mark or a deletion by what the instance has looked at.
func (c *collector) judged(change fake.Change) {
	label := fake.Text(change.Before, "metadata", "labels", "resources.gardener.cloud/garbage-collectable-reference")
	if label != "true" && label != "True" {
		c.violateLocked(collectsMarked, "%s %ss %s, which has the label %q", change.By, change.Verb, change.Key, label)
	}
	created, err := time.Parse(time.RFC3339, fake.Text(change.Before, "metadata", "creationTimestamp"))
	if err != nil || time.Since(created) < collectorAge {
		c.violateLocked(collectsOld, "%s %ss %s, which is %v old", change.By, change.Verb, change.Key, time.Since(created))
	}
	for _, holder := range holderKeys {
		listed, failed := c.heardAt(change.By, "target", "list", holder.Resource, "", ""), c.failedAt(change.By, "target", "list", holder.Resource, "", "")
		if listed.IsZero() || failed.After(listed) {
			c.violateLocked(collectsAll, "%s %ss %s, and its last list of %s did not succeed", change.By, change.Verb, change.Key, holder.Resource)
		}
		// References from before the list, which it saw.
		if began, holds := c.referred[heldKey(holder, change.Key)]; holds && began.Before(listed) {
			c.violateLocked(collectsUnused, "%s %ss %s, which %s refers to since %v; it listed them at %v", change.By, change.Verb, change.Key, holder, began.Sub(c.begin), listed.Sub(c.begin))
		}
	}
}

func (c *collector) play(map[fake.Key]object) {}

func (c *collector) settled() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, key := range litterKeys {
		o := c.target.GetLocked(key)
		if label := fake.Text(o, "metadata", "labels", "resources.gardener.cloud/garbage-collectable-reference"); o != nil && (label == "true" || label == "True") && len(c.holdersOf(key)) == 0 {
			c.violateLocked(becomesCollected, "%s is still there", key)
		}
		if len(c.holdersOf(key)) > 0 && fake.Text(o, "metadata", "labels", condemnedLabel) != "" {
			c.violateLocked(endsUnmarked, "%s is marked for deletion", key)
		}
	}
}
