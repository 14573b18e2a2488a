package simulation

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
	"github.com/espalier-project/espalier/test/fake"
)

// rollouts is a world with a roll-out group: each member has objects of its own, so that it is clear which content each object has.
type rollouts struct {
	*world
	// number is that of the newest content.
	number int
	// revisions are all contents that were ever delivered, by member and number, and by their checksum.
	contents  map[[2]int]*memberContent
	revisions map[string]*memberContent
	group     groupState
	members   []*memberState
	// inTouch is false until the world is at rest for the first time.
	inTouch bool
	// haltedSince is since when the group has been halted by what is certain, zero if it is not.
	haltedSince time.Time
}

const (
	// mostMembers bounds the members, one more of which is in no group.
	mostMembers = 8
	groupName   = "g"
	canary      = "canary"
)

var (
	groupKey  = fake.Key{GroupResource: schema.GroupResource{Resource: "configmaps"}, Namespace: sourceNamespace, Name: groupName}
	configs   = schema.GroupResource{Resource: "configmaps"}
	groupFull = sourceNamespace + "/" + groupName
)

// memberContent is one content of one member.
type memberContent struct {
	member, number int
	revision, sum  string
	does           rune
	data           map[string]any
}

// hasExtra reports whether a content has one more object: a content without it deletes the one that the content before had.
func (c *memberContent) hasExtra() bool { return c.number%2 == 1 }

// memberKey is the ManagedResource of a member; every third one is in another namespace.
func memberKey(i int) fake.Key {
	namespace := sourceNamespace
	if i%3 == 0 {
		namespace = canary
	}
	return fake.Key{GroupResource: managedResources, Namespace: namespace, Name: fmt.Sprintf("r%d", i)}
}

func memberOf(key fake.Key) (int, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(key.Name, "r"))
	return i, key.GroupResource == managedResources && err == nil
}

func ringOf(i int) string { return strconv.Itoa(i % 2) }

// The objects of a member: a ConfigMap and a Deployment that all contents have, and a ConfigMap that every second one has.
func plainKey(i int) fake.Key {
	return fake.Key{GroupResource: configs, Namespace: targetNamespace, Name: fmt.Sprintf("c%d", i)}
}

func extraKey(i int) fake.Key {
	return fake.Key{GroupResource: configs, Namespace: targetNamespace, Name: fmt.Sprintf("x%d", i)}
}

func workloadKey(i int) fake.Key {
	return fake.Key{GroupResource: deploymentResource, Namespace: targetNamespace, Name: fmt.Sprintf("d%d", i)}
}

// memberObject says which member has an object of the target.
func memberObject(key fake.Key) (int, bool) {
	if key.Name == "" || key.GroupResource != configs && key.GroupResource != deploymentResource {
		return 0, false
	}
	i, err := strconv.Atoi(key.Name[1:])
	return i, err == nil
}

func configMapWith(name string, number int) object {
	return manifest("v1", "ConfigMap", name, object{"data": object{"v": strconv.Itoa(number)}})
}

func workloadWith(name string, number int) object {
	return manifest("apps/v1", "Deployment", name, object{"spec": object{
		"replicas": 0, "selector": object{"matchLabels": object{"app": name}},
		"template": object{"metadata": object{"labels": object{"app": name}}, "spec": object{"containers": []any{
			object{"name": "c", "image": "i", "env": []any{object{"name": "v", "value": strconv.Itoa(number)}}},
		}}},
	}})
}

// numberIn is the number of the content that an object has, "" for none.
func numberIn(o object) string {
	if fake.Text(o, "kind") != "Deployment" {
		return fake.Text(o, "data", "v")
	}
	spec, _ := o["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return ""
	}
	env, _ := containers[0].(map[string]any)["env"].([]any)
	if len(env) == 0 {
		return ""
	}
	return fake.Text(env[0].(map[string]any), "value")
}

// RunRollouts lets a scenario with a roll-out group happen in a bubble of its own.
func RunRollouts(t *testing.T, scenario *Scenario, logger logr.Logger) Result {
	if scenario.Rollouts.Members == 0 {
		return Run(t, scenario, logger)
	}
	return inBubble(t, scenario, func() *world {
		r := newRollouts(scenario, logger)
		r.run()
		return r.world
	})
}

func newRollouts(scenario *Scenario, logger logr.Logger) *rollouts {
	r := &rollouts{world: newWorld(scenario, logger), contents: map[[2]int]*memberContent{}, revisions: map[string]*memberContent{}}
	for i := range scenario.Rollouts.Members + 1 {
		r.members = append(r.members, newMemberState(i))
	}
	r.meddler = r.meddleMember
	kinds := append(fake.BuiltIn(), fake.CustomKind(managedResources.Group, "v1alpha1", "ManagedResource", managedResources.Resource, true))
	r.source = fake.New(&r.lock, kinds, r.sourceChanged, sourceNamespace, canary)
	r.target = fake.New(&r.lock, fake.BuiltIn(), r.targetChanged, targetNamespace)
	r.target.Cluster = 1
	return r
}

// outsider is the number of the ManagedResource that is in no group.
func (r *rollouts) outsider() int { return r.scenario.Rollouts.Members }

func (r *rollouts) run() {
	stop := make(chan struct{})
	var controllers sync.WaitGroup
	controllers.Go(func() { r.atNews(stop, r.rollOutAll) })
	r.healed = true // Nothing fails until all have their first content.
	r.putGroup(r.scenario.Rollouts.Group)
	for i := range r.members {
		r.deliver(i, 0, "")
	}
	r.mu.Lock()
	r.leader = r.bootLocked("")
	r.mu.Unlock()
	time.Sleep(time.Minute)
	r.begun()
	r.eachStep(r.take)
	r.endFaults()
	for i := range r.members {
		if mr := r.get(r.source, memberKey(i)); mr != nil && (saysHold(mr) || isIgnored(mr)) {
			r.annotateAll(r.source, memberKey(i), object{resourcesv1alpha1.AnnotationIgnore: nil, resourcesv1alpha1.AnnotationLeaveAloneUntil: nil})
		}
	}
	time.Sleep(r.settles())
	r.checkSettled()
	r.countFrom()
	time.Sleep(idle)
	r.checkIdle()
	r.finish()
	time.Sleep(r.settles())
	r.checkSettled()
	r.checkMended()
	r.countFrom()
	time.Sleep(idle)
	r.checkIdle()
	r.end()
	close(stop)
	controllers.Wait()
}

// begun has faults begin, and requests for them count.
func (r *rollouts) begun() {
	r.lock.Lock()
	r.inTouch = true
	r.lock.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.healed = false
	clear(r.seen)
}

// settles is how long a group takes at most until nothing happens any more: each wave may take its pause and its timeout, one after the other.
func (r *rollouts) settles() time.Duration {
	const waves = 4
	return settle + waves*(longestPause+longestTimeout)
}

const longestPause, longestTimeout = 2 * time.Minute, 10 * time.Minute

// finish has the roll-out go on past what failed, or aborts it, if the scenario says so; in any case all get a good content in the end.
func (r *rollouts) finish() {
	r.tracef("== in the end: %s", r.scenario.Rollouts.End)
	r.putGroup(r.group.text)
	switch r.scenario.Rollouts.End {
	case endResumed:
		for range r.members {
			if !r.anyWaits() {
				break
			}
			r.kubectl("resume")
			time.Sleep(r.settles())
		}
		r.checkResumed()
	case endAborted:
		time.Sleep(r.settles())
		r.kubectl("abort")
		time.Sleep(r.settles())
		r.checkSettled()
	}
	for i := range r.members {
		r.sicken(i, false)
	}
	r.number++
	for i := range r.members {
		r.deliver(i, r.number, "")
	}
}

// contentOf makes the content of a member with a number, which does to it what a text says.
func (r *rollouts) contentOf(i, number int, bad string) *memberContent {
	if c := r.contents[[2]int{i, number}]; c != nil {
		return c
	}
	c := &memberContent{member: i, number: number, does: good}
	if i < len(bad) {
		c.does = rune(bad[i])
	}
	manifests := map[string]object{"c.json": configMapWith(plainKey(i).Name, number), "d.json": workloadWith(workloadKey(i).Name, number)}
	if c.hasExtra() {
		manifests["x.json"] = configMapWith(extraKey(i).Name, number)
	}
	if c.does == unserved {
		manifests["z.json"] = manifest("things.example.org/v1", "Widget", fmt.Sprintf("w%d", i), nil)
	}
	c.data = map[string]any{}
	for name, o := range manifests {
		c.data[name] = base64.StdEncoding.EncodeToString([]byte(marshal(o)))
	}
	c.sum = sum([]string{""}, []version{{data: c.data}})
	c.revision = c.sum
	r.lock.Lock()
	defer r.lock.Unlock()
	r.contents[[2]int{i, number}], r.revisions[c.revision] = c, c
	return c
}

// deliver writes a content as gardenlet does: first the Secret, then the ManagedResource that names it.
func (r *rollouts) deliver(i, number int, bad string) {
	c, key := r.contentOf(i, number, bad), memberKey(i)
	secret := fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: key.Name}
	if !r.scenario.Rollouts.InPlace {
		secret.Name = fmt.Sprintf("%s-%d", key.Name, number)
	}
	mr := r.get(r.source, key)
	if mr == nil && r.inTouch {
		return // Somebody deleted it.
	}
	r.put(r.source, secret, object{"apiVersion": "v1", "kind": "Secret", "data": c.data})
	spec := object{"secretRefs": []any{object{"name": secret.Name}}}
	if mr != nil {
		r.patch(key, object{"spec": spec})
		return
	}
	metadata := object{"labels": object{"ring": ringOf(i)}}
	if i != r.outsider() {
		metadata["annotations"] = object{resourcesv1alpha1.AnnotationRolloutGroup: groupName}
	}
	r.put(r.source, key, object{"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource", "metadata": metadata, "spec": spec})
}

// revise delivers a new content to everybody, to all at once or one after the other.
func (r *rollouts) revise(step Step, pause time.Duration) {
	r.number++
	for at := range r.members {
		r.deliver((at+step.A)%len(r.members), r.number, step.Fields)
		time.Sleep(pause)
	}
}

// revert delivers the content once more that a member has.
func (r *rollouts) revert(i int) {
	r.lock.Lock()
	c := r.revisions[r.members[i].applied]
	r.lock.Unlock()
	if c != nil {
		r.deliver(i, c.number, "")
	}
}

func (r *rollouts) put(server *fake.Server, key fake.Key, o object) {
	fake.Meta(o)["name"] = key.Name
	if isNotFound(r.request(server, http.MethodPut, r.pathOf(server, key), o)) {
		at := key
		at.Name = ""
		r.request(server, http.MethodPost, r.pathOf(server, at), o)
	}
}

func (r *rollouts) remove(server *fake.Server, key fake.Key) {
	r.request(server, http.MethodDelete, r.pathOf(server, key), nil)
}

func (r *rollouts) patch(key fake.Key, patch object) {
	r.request(r.source, http.MethodPatch, r.pathOf(r.source, key), patch)
}

func resourceIs(resource string) func(string, *fake.Kind) bool {
	return func(_ string, k *fake.Kind) bool { return resource == "" || k.Resource == resource }
}

// join has a member join the group, or leave it.
func (r *rollouts) join(i int, joins bool) {
	var name any
	if joins {
		name = groupName
	}
	r.patch(memberKey(i), object{"metadata": object{"annotations": object{resourcesv1alpha1.AnnotationRolloutGroup: name}}})
}

// someWaves are the waves that ConfigMaps have. text is as people write them, the rest is what it means.
var someWaves = []someWave{
	{`[{namespaces: ["can*"]}]`, []waveMeant{{selects: inCanary}}},
	{"- selector: ring=0\n- untilPercent: 60\n", []waveMeant{{selects: inRing("0")}, {until: 60}}},
	{"[{untilPercent: 20}, {untilPercent: 50}]", []waveMeant{{until: 20}, {until: 50}}},
	{`[{namespaces: ["can*"], selector: ring=0}, {untilPercent: 34}]`, []waveMeant{{selects: func(i int) bool { return inCanary(i) && inRing("0")(i) }}, {until: 34}}},
	{"- selector: ring in (0)\n- selector: ring=1\n", []waveMeant{{selects: inRing("0")}, {selects: inRing("1")}}},
	{"[{untilPercent: 100}]", []waveMeant{{until: 100}}},
}

// someWave is the value of a ConfigMap's key waves.
type someWave struct {
	text  string
	waves []waveMeant
}

// waveMeant is a wave: which members it selects, or how many percent are reached with it.
type waveMeant struct {
	selects func(int) bool
	until   int
}

func inCanary(i int) bool { return memberKey(i).Namespace == canary }

func inRing(ring string) func(int) bool { return func(i int) bool { return ringOf(i) == ring } }

// putGroup writes the ConfigMap; what people resumed and aborted stays if it is there.
func (r *rollouts) putGroup(text groupText) {
	data := object{"waves": someWaves[text.Waves].text, "pause": text.Pause.String(), "timeout": text.Timeout.String()}
	if text.MaxUnavailable > 0 {
		data["maxUnavailable"] = strconv.Itoa(text.MaxUnavailable)
	}
	if text.MaxFailed > 0 {
		data["maxFailed"] = strconv.Itoa(text.MaxFailed)
	}
	o := object{"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": object{"labels": object{resourcesv1alpha1.LabelRolloutGroup: ""}}}
	r.lock.Lock()
	r.group.text = text
	if annotations := annotationsOf(r.source.GetLocked(groupKey)); annotations != nil && r.group.names != resourcesv1alpha1.AnnotationRolloutAborted {
		fake.Meta(o)["annotations"] = annotations
	}
	r.lock.Unlock()
	r.put(r.source, groupKey, o)
}

// editGroup changes what the ConfigMap says.
func (r *rollouts) editGroup(step Step) {
	text := r.group.text
	switch step.B % 4 {
	case 0:
		text.Waves = step.A % len(someWaves)
	case 1:
		text.Pause = []time.Duration{0, time.Minute, 2 * time.Minute}[step.A%3]
	case 2:
		text.MaxUnavailable = step.A % 3
	default:
		text.MaxFailed = step.A % 2
	}
	r.putGroup(text)
}

// malformedGroups are patches that make the ConfigMap mean no group, and what the members' condition has to name then.
var malformedGroups = []struct {
	patch object
	names string
}{
	{object{"data": object{"waves": "- selector: ["}}, "waves"},
	{object{"data": object{"waves": nil}}, "waves"},
	{object{"data": object{"wave": "[]"}}, "key wave"},
	{object{"data": object{"pause": "soon"}}, "pause"},
	{object{"data": object{"maxUnavailable": "0"}}, "maxUnavailable"},
	{object{"data": object{"waves": "[{untilPercent: 50}, {untilPercent: 20}]"}}, "waves"},
	{object{"metadata": object{"labels": object{resourcesv1alpha1.LabelRolloutGroup: nil}}}, groupFull},
	{object{"metadata": object{"annotations": object{resourcesv1alpha1.AnnotationRolloutAborted: "all"}}}, resourcesv1alpha1.AnnotationRolloutAborted},
}

func (r *rollouts) malformGroup(which int) {
	if r.get(r.source, groupKey) == nil {
		return
	}
	r.patch(groupKey, malformedGroups[which%len(malformedGroups)].patch)
}

// kubectl does what `kubectl espalier rollout` does: it reads the group and its members, and annotates the ConfigMap.
func (r *rollouts) kubectl(word string) {
	r.lock.Lock()
	o := r.source.GetLocked(groupKey)
	var members []*rollout.Member
	var group *rollout.Group
	if o != nil {
		data, _ := o["data"].(map[string]any)
		group, _ = rollout.Parse(groupFull, textsOf(data), textsOf(annotationsOf(o)))
	}
	if group == nil {
		r.lock.Unlock()
		return // It says so, and writes nothing.
	}
	for i := range r.members {
		mr := r.source.GetLocked(memberKey(i))
		if mr == nil {
			continue
		}
		read := typed[resourcesv1alpha1.ManagedResource](mr)
		if rollout.GroupOf(read) != groupName || !rollout.IsMember(read) {
			continue
		}
		m := rollout.MemberOf(read)
		m.Judge(read.Status.Conditions, group.Progressing)
		members = append(members, &m)
	}
	r.lock.Unlock()
	decision := group.Decide(members, group.Assign(members), time.Now())
	annotations := object{}
	switch word {
	case "resume":
		text, _ := rollout.Tokens(group.Resume(decision))
		annotations[resourcesv1alpha1.AnnotationRolloutResumed], annotations[resourcesv1alpha1.AnnotationRolloutAborted] = text, nil
	default:
		tokens := group.Abort(members, decision)
		if len(tokens) == 0 {
			return
		}
		annotations[resourcesv1alpha1.AnnotationRolloutAborted], _ = rollout.Tokens(tokens)
	}
	r.patch(groupKey, object{"metadata": object{"annotations": annotations}})
}

func textsOf(values map[string]any) map[string]string {
	texts := map[string]string{}
	for key, value := range values {
		texts[key], _ = value.(string)
	}
	return texts
}

// editMember changes an object of the target, if it is there.
func (r *rollouts) editMember(key fake.Key, edit func(object)) {
	if o := r.get(r.target, key); o != nil {
		o = runtime.DeepCopyJSON(o)
		edit(o)
		r.request(r.target, http.MethodPut, r.pathOf(r.target, key), o)
	}
}

func (r *rollouts) drift(i, which int) {
	key := []fake.Key{plainKey(i), extraKey(i), workloadKey(i)}[which%3]
	r.editMember(key, func(o object) {
		if key.Resource == "deployments" {
			o["spec"] = workloadWith(key.Name, drifted)["spec"]
		} else {
			o["data"] = object{"v": strconv.Itoa(drifted)}
		}
	})
	r.awaitRepair(i, key)
}

// drifted is a number that no content has.
const drifted = 99

func (r *rollouts) driftDelete(i, which int) {
	key := []fake.Key{plainKey(i), extraKey(i), workloadKey(i)}[which%3]
	r.remove(r.target, key)
	r.awaitRepair(i, key)
}

// meddleMember lets somebody else change or delete what was just written to the target.
func (r *rollouts) meddleMember(cluster string, request *fake.Request, remove bool) {
	key := request.Key()
	if request.Verb == "create" {
		key.Name = fake.Text(decode(string(request.Body)), "metadata", "name")
	}
	if _, is := memberObject(key); cluster != "target" || !is || request.Verb == "delete" {
		return
	}
	if remove {
		r.remove(r.target, key)
		return
	}
	r.editMember(key, func(o object) {
		if key.Resource == "configmaps" {
			o["data"] = object{"v": strconv.Itoa(drifted)}
		}
	})
}

// sickness is an annotation of a Deployment that is unhealthy whatever its content is.
const sickness = "example.org/sick"

func (r *rollouts) sicken(i int, isSick bool) {
	var value any
	if isSick {
		value = "true"
	}
	key := workloadKey(i)
	r.request(r.target, http.MethodPatch, r.pathOf(r.target, key), object{"metadata": object{"annotations": object{sickness: value}}})
}

// rollOutAll does on the target what kube-controller-manager does: a Deployment is available unless its content, or somebody, has it fail.
func (r *rollouts) rollOutAll(objects map[fake.Key]object) {
	for key, o := range objects {
		r.collect(key, o)
		if key.GroupResource != deploymentResource {
			continue
		}
		available := "True"
		if r.isBroken(key, o) {
			available = "False"
		}
		status, _ := o["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		if fake.Text(o, "status", "observedGeneration") == fake.Text(o, "metadata", "generation") && len(conditions) > 0 &&
			conditions[0].(map[string]any)["status"] == available {
			continue
		}
		generation, _ := fake.Meta(o)["generation"].(int64)
		r.request(r.target, http.MethodPatch, r.pathOf(r.target, key)+"/status", object{"status": object{
			"observedGeneration": generation,
			"conditions": []any{
				object{"type": "Available", "status": available, "reason": "Minimum", "message": "says the simulation"},
				object{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "ok"},
			},
		}})
	}
}

// isBroken reports whether a Deployment does not become available.
func (r *rollouts) isBroken(key fake.Key, o object) bool {
	i, is := memberObject(key)
	number, err := strconv.Atoi(numberIn(o))
	if !is || err != nil {
		return false
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	c := r.contents[[2]int{i, number}]
	return c != nil && c.does == unhealthy || fake.Text(o, "metadata", "annotations", sickness) != ""
}

// collectSecrets does what the garbage collector does: Secrets of members that no ManagedResource refers to are deleted. It does not come so soon that a
// member could not have referred to what it needs.
func (r *rollouts) collectSecrets() {
	if r.scenario.Rollouts.InPlace {
		return
	}
	time.Sleep(r.slack())
	r.lock.Lock()
	used := map[fake.Key]bool{}
	var unused []fake.Key
	for key, o := range r.source.AllLocked() {
		if key.GroupResource != managedResources {
			continue
		}
		for _, name := range referencesOf(o) {
			used[fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: name}] = true
		}
		for annotation, value := range annotationsOf(o) {
			if strings.HasPrefix(annotation, resourcesv1alpha1.AnnotationReferencePrefix+"secret-") {
				used[fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: value.(string)}] = true
			}
		}
	}
	for key := range r.source.AllLocked() {
		if key.GroupResource == secretResource && !used[key] {
			unused = append(unused, key)
		}
	}
	r.checkCollected(unused)
	r.lock.Unlock()
	slices.SortFunc(unused, func(a, b fake.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range unused {
		r.remove(r.source, key)
	}
}

// recordIn is the record of a ManagedResource (ROL-9).
type recordText struct {
	Revision string    `json:"revision"`
	Time     time.Time `json:"time"`
	Secrets  []string  `json:"secrets"`
}

func recordIn(mr object) (record recordText) {
	_ = json.Unmarshal([]byte(fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationRolloutApplied)), &record)
	return record
}

// conditionIn is a condition of a ManagedResource; nil if there is none.
func conditionIn(mr object, name resourcesv1alpha1.ConditionType) object {
	status, _ := mr["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, entry := range conditions {
		if c := entry.(map[string]any); c["type"] == string(name) {
			return c
		}
	}
	return nil
}

// objectsWith are the objects of a member and the numbers that they have with a content.
func objectsWith(c *memberContent) map[fake.Key]string {
	number := strconv.Itoa(c.number)
	all := map[fake.Key]string{plainKey(c.member): number, workloadKey(c.member): number, extraKey(c.member): ""}
	if c.hasExtra() {
		all[extraKey(c.member)] = number
	}
	return all
}
