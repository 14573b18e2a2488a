package dropin

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// Flags of the hand-over; make handover sets them.
var (
	referenceFile = flag.String("reference-rm", "", "executable of the reference's resource-manager; the hand-over is between two of ours without it")
	ownFile       = flag.String("own-rm", "", "executable of our resource-manager; it is built without it")
	turnsWanted   = flag.Int("turns", 8, "how many turns the hand-over has")
	alwaysUpdates = flag.Bool("always-update", true, "whether the configuration has alwaysUpdate, as gardenlet renders it")
	turnsDraw     = flag.Uint64("draw", 1, "what the turns are drawn from; 0 means any")
)

const (
	inTurns   = "shoot--dev--turns"
	stableMRs = 3
	// restEvery counts the turns until one lasts until everything has settled.
	restEvery = 5
)

// handOver lets two executables look after the same shoot in turns, each from where the other one was when it ended.
type handOver struct {
	t              *testing.T
	source, target *audited
	// ours and theirs are links, so that their names are in the user agents of requests.
	ours, theirs string
	draw         *rand.Rand
	// releases are what is deployed, by name; versions count their contents.
	releases map[string]*release
	versions map[string]int
	// deleted are the names of releases that were taken away.
	deleted []string
	// uids are those of objects that are never to be deleted.
	uids    map[string]types.UID
	changed []string
	created int
}

// MRA-6, DPL-25, OPB-2: the hand-over property. Either executable may end at any moment, and the other one goes on: no object gets
// another UID, nothing is deleted but what was taken away, and no write of ours changes nothing.
func TestHandOver(t *testing.T) {
	h := newHandOver(t)
	for turn := range *turnsWanted {
		rests := turn%restEvery == restEvery-1 || turn >= *turnsWanted-2
		h.turn(turn, turn%2 == 1, rests)
	}
	h.lookAtUIDs()
	foreign := append(h.deletions(h.source), h.deletions(h.target)...)
	ofOurs := append(h.needless(h.source, h.ours), h.needless(h.target, h.ours)...)
	ofTheirs := append(h.needless(h.source, h.theirs), h.needless(h.target, h.theirs)...)
	t.Logf("%d turns: %d UIDs changed of %d, %d foreign deletions, needless writes: %d of ours, %d of the reference",
		*turnsWanted, len(h.changed), len(h.uids), len(foreign), len(ofOurs), len(ofTheirs))
	for what, found := range map[string][]string{"UIDs changed": h.changed, "foreign deletions": foreign, "writes of ours that change nothing": ofOurs} {
		if len(found) > 0 {
			t.Errorf("%s: %v", what, found[:min(len(found), 20)])
		}
	}
	for _, on := range []*audited{h.source, h.target} {
		for _, file := range []string{h.ours, h.theirs} {
			if len(h.written(on, file)) == 0 {
				t.Errorf("%s: no write of %s was seen, so that nothing is known of its writes", on.Name, filepath.Base(file))
			}
		}
	}
}

// Audit logs, and nothing else, show what the property forbids.
func TestHandOverSees(t *testing.T) {
	line := func(agent, verb, name, version, more string, code int) string {
		return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"userAgent":"%s/v1","objectRef":{"resource":"configmaps","name":%q},"responseStatus":{"code":%d},"responseObject":{"metadata":{"uid":%q,"resourceVersion":%q%s}}}`,
			verb, agent, name, code, name, version, more)
	}
	file := filepath.Join(t.TempDir(), "audit.log")
	must.Succeed(t, os.WriteFile(file, []byte(strings.Join([]string{
		line("kubectl", "create", "a", "1", "", 201),
		line("ours", "update", "a", "2", "", 200),
		line("theirs", "update", "a", "2", "", 200),
		line("ours", "update", "b", "2", "", 200), // Another object.
		line("ours", "update", "a", "2", "", 409),
		line("ours", "patch", "a", "2", "", 200),
		line("ours", "patch", "b", "2", `,"deletionTimestamp":"2026-01-01T00:00:00Z"`, 200),
		line("ours", "delete", "a", "", "", 200),
		line("theirs", "delete", "b", "", "", 200),
		line("theirs", "delete", "c", "", "", 404),
		line("kubectl", "delete", "d", "", "", 200),
	}, "\n")+"\n"), 0o600))
	h := &handOver{t: t, ours: "/x/ours", theirs: "/x/theirs", deleted: []string{"a"}}
	log := &audited{log: file}
	for what, tc := range map[string]struct{ got, want []string }{
		"needless of ours":     {h.needless(log, h.ours), []string{"patch configmaps /a"}},
		"needless of theirs":   {h.needless(log, h.theirs), []string{"update configmaps /a"}},
		"deleted, but not for": {h.deletions(log), []string{"delete configmaps /b"}},
	} {
		expect.DeepEqual(t, tc.got, tc.want, "%s", what)
	}
}

func newHandOver(t *testing.T) *handOver {
	t.Helper()
	drawn := cmp.Or(*turnsDraw, uint64(time.Now().UnixNano()))
	t.Logf("drawn from %d: repeat the turns with -draw=%d", drawn, drawn)
	h := &handOver{
		t: t, source: get(t, seed), target: get(t, shoot), draw: rand.New(rand.NewPCG(drawn, 0)), releases: map[string]*release{}, versions: map[string]int{},
		uids: map[string]types.UID{},
	}
	own := *ownFile
	if own == "" {
		own = get(t, func() (string, error) { return binary("resource-manager") })
	}
	h.ours, h.theirs = h.link("espalier-resource-manager", own), h.link("reference-resource-manager", cmp.Or(*referenceFile, own))
	filled := shootValues(t, h.source, h.target, newAuthority(t), inTurns)
	filled["alwaysUpdate"] = strconv.FormatBool(*alwaysUpdates)
	h.source.deploy(t, "shoot.yaml", filled)
	must.Succeed(t, client.IgnoreNotFound(h.target.client.Delete(t.Context(), harness.Object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "gardener.cloud:target:resource-manager"))))
	at := time.Now().Add(-time.Hour)
	rights := newRelease(t, inTurns, "shoot-core-gardener-resource-manager", ownRights()...)
	rights.leave(t, h.source, h.target, at)
	must.Succeed(t, h.source.client.Delete(t.Context(), harness.Secret(inTurns, accessKey, nil)))
	h.source.issued(t, h.target, accessSecret(inTurns, "gardener-resource-manager", nil), bare)
	h.source.issued(t, h.target, accessSecret(inTurns, "turned", nil), bare)
	for i := range stableMRs {
		r := h.content(fmt.Sprintf("turn-stays-%d", i))
		r.leave(t, h.source, h.target, at)
		for _, o := range r.objects {
			h.stays(text(o, "apiVersion"), text(o, "kind"), text(o, "metadata", "namespace"), text(o, "metadata", "name"))
		}
	}
	h.others()
	return h
}

func (h *handOver) link(name, file string) string {
	h.t.Helper()
	file, err := filepath.Abs(file)
	must.Succeed(h.t, err)
	link := filepath.Join(h.t.TempDir(), name)
	must.Succeed(h.t, os.Symlink(file, link))
	return link
}

// others are objects that nobody's ManagedResource has, and one that another instance's has.
func (h *handOver) others() {
	h.t.Helper()
	for name, annotations := range map[string]map[string]string{"turn-nobodys": nil, "turn-anothers": {origin: "another:namespace/one"}} {
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system", Annotations: annotations, Labels: map[string]string{managedBy: "gardener"}}}
		must.Succeed(h.t, client.IgnoreAlreadyExists(h.target.client.Create(h.t.Context(), foreign)))
		h.stays("v1", "ConfigMap", "kube-system", name)
	}
}

// content returns the next content of a release.
func (h *handOver) content(name string) *release {
	h.t.Helper()
	objects := managedObjects(name)[:6] // Nobody here rolls out a Deployment.
	h.versions[name]++
	objects[0].(object)["data"] = object{"a": strconv.Itoa(h.versions[name])}
	h.releases[name] = newRelease(h.t, inTurns, name, objects...)
	return h.releases[name]
}

func nameOf(apiVersion, kind, namespace, name string) string {
	return strings.Join([]string{apiVersion, kind, namespace, name}, " ")
}

// stays notes the UID of an object that is never to be deleted.
func (h *handOver) stays(apiVersion, kind, namespace, name string) {
	h.t.Helper()
	h.uids[nameOf(apiVersion, kind, namespace, name)] = h.target.live(h.t, apiVersion, kind, namespace, name).GetUID()
}

// lookAtUIDs notes the objects that are others by now.
func (h *handOver) lookAtUIDs() {
	h.t.Helper()
	for name, uid := range h.uids {
		parts := strings.Split(name, " ")
		live := harness.Object(parts[0], parts[1], parts[2], parts[3])
		err := h.target.client.Get(h.t.Context(), client.ObjectKeyFromObject(live), live)
		if (client.IgnoreNotFound(err) == nil && err != nil || err == nil && live.GetUID() != uid) && !slices.Contains(h.changed, name) {
			h.changed = append(h.changed, name)
		}
	}
}

// turn is the time of one executable: users change something, and it ends in the midst of that unless it rests.
func (h *handOver) turn(number int, ours, rests bool) {
	h.t.Helper()
	file, defaults := h.theirs, ""
	if ours {
		file, defaults = h.ours, "profile: gardener\n" // As our images have it.
	}
	p := h.source.startFile(h.t, inTurns, "gardener-resource-manager", defaults, func(string) string { return file })
	begun := rests || h.draw.IntN(4) > 0
	if begun {
		p.ready()
		h.source.leads(h.t, inTurns, "")
	}
	for range 1 + h.draw.IntN(3) {
		h.change(ours)
		h.pause(300 * time.Millisecond)
	}
	if rests {
		h.settle()
		h.lookAtUIDs()
	}
	switch kill := h.draw.IntN(2) == 0; {
	case kill || !begun: // Before it has begun a process does not heed SIGTERM.
		p.Kill()
	case ours:
		p.stop()
	default:
		p.Stop() // Its exit code is not ours to judge.
	}
	h.expire()
	h.t.Logf("turn %d of %s is over", number, filepath.Base(file))
}

// pause lets up to some time go by: how far the executable has come then is what is drawn.
func (h *handOver) pause(most time.Duration) {
	timer := time.NewTimer(time.Duration(h.draw.Int64N(int64(most))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.t.Context().Done():
	}
}

// expire ends the lease of a process that is gone, as time would.
func (h *handOver) expire() {
	h.t.Helper()
	must.Succeed(h.t, client.IgnoreNotFound(h.source.client.Delete(h.t.Context(), harness.Object("coordination.k8s.io/v1", "Lease", inTurns, "gardener-resource-manager"))))
}

// change is what gardenlet, or a user of the shoot, does.
func (h *handOver) change(ours bool) {
	h.t.Helper()
	going := slices.Sorted(func(yield func(string) bool) {
		for name := range h.releases {
			if strings.HasPrefix(name, "turn-comes-") && !yield(name) {
				return
			}
		}
	})
	switch kind := h.draw.IntN(5); {
	case kind == 0 && len(going) > 0:
		h.takeAway(going[h.draw.IntN(len(going))])
	case kind <= 1:
		h.created++
		r := h.content(fmt.Sprintf("turn-comes-%d", h.created))
		must.Succeed(h.t, h.source.client.Create(h.t.Context(), r.secret))
		must.Succeed(h.t, h.source.client.Create(h.t.Context(), r.managedResource()))
	case kind == 2:
		h.rotate()
	case kind == 3 && ours: // The reference puts drift right with its next period, which nobody here waits for.
		drifts := harness.Object("v1", "ConfigMap", "kube-system", fmt.Sprintf("turn-stays-%d", h.draw.IntN(stableMRs)))
		must.Succeed(h.t, h.target.client.Patch(h.t.Context(), drifts, harness.MergePatch(object{"data": object{"a": "drift"}})))
	default:
		h.renew(fmt.Sprintf("turn-stays-%d", h.draw.IntN(stableMRs)))
	}
}

// takeAway deletes a ManagedResource.
func (h *handOver) takeAway(name string) {
	h.t.Helper()
	must.Succeed(h.t, client.IgnoreNotFound(h.source.client.Delete(h.t.Context(), h.releases[name].managedResource())))
	delete(h.releases, name)
	h.deleted = append(h.deleted, name)
}

// renew gives a ManagedResource another content, in a Secret of another name, as gardenlet does.
func (h *handOver) renew(name string) {
	h.t.Helper()
	r := h.content(name)
	must.Succeed(h.t, h.source.client.Create(h.t.Context(), r.secret))
	mr := r.managedResource()
	must.Succeed(h.t, h.source.client.Patch(h.t.Context(), mr.DeepCopy(), harness.MergePatch(object{
		"metadata": object{"annotations": mr.Annotations}, "spec": object{"secretRefs": mr.Spec.SecretRefs},
	})))
}

// rotate makes a token due.
func (h *handOver) rotate() {
	h.t.Helper()
	must.Succeed(h.t, h.source.client.Patch(h.t.Context(), harness.Secret(inTurns, "shoot-access-turned", nil), harness.MergePatch(object{"metadata": object{"annotations": object{renewKey: "2020-01-01T00:00:00Z"}}})))
}

// settle waits until everything is as users want it.
func (h *handOver) settle() {
	h.t.Helper()
	for name, r := range h.releases {
		eventually(h.t, bootstrapLimit, func() error { return h.isApplied(name, r) })
	}
	for _, name := range h.deleted {
		eventually(h.t, bootstrapLimit, func() error {
			err := h.source.client.Get(h.t.Context(), client.ObjectKey{Namespace: inTurns, Name: name}, &resourcesv1alpha1.ManagedResource{})
			if err == nil {
				return fmt.Errorf("%s is still there", name)
			}
			return client.IgnoreNotFound(err)
		})
	}
	eventually(h.t, bootstrapLimit, func() error {
		at, err := h.source.renewal(h.t.Context(), inTurns, "shoot-access-turned")
		if err == nil && at.Before(time.Now()) {
			return errors.New("the token is due")
		}
		return err
	})
}

func (h *handOver) isApplied(name string, r *release) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := h.source.client.Get(h.t.Context(), client.ObjectKey{Namespace: inTurns, Name: name}, mr); err != nil {
		return err
	}
	if err := harness.Settled(mr); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	live := &corev1.ConfigMap{}
	if err := h.target.client.Get(h.t.Context(), client.ObjectKey{Namespace: "kube-system", Name: name}, live); err != nil {
		return err
	}
	if want := strconv.Itoa(h.versions[name]); live.Data["a"] != want && live.Data["a"] != "drift" || mr.Status.SecretsDataChecksum == nil || *mr.Status.SecretsDataChecksum != r.checksum() {
		return fmt.Errorf("%s has content %q, want %q", name, live.Data["a"], want)
	}
	return nil
}

// written are the writes of an executable that an API server carried out.
func (h *handOver) written(on *audited, file string) []*cluster.Request {
	h.t.Helper()
	agent := filepath.Base(file) + "/"
	var all []*cluster.Request
	must.Succeed(h.t, cluster.EachRequest(on.log, "", func(r *cluster.Request) {
		if strings.HasPrefix(r.UserAgent, agent) && writes((*request)(r)) && r.Stage == "ResponseComplete" && r.Response.Code < 300 {
			all = append(all, r)
		}
	}))
	return all
}

// deletions are those of objects that were not taken away.
func (h *handOver) deletions(on *audited) []string {
	h.t.Helper()
	var foreign []string
	for _, r := range append(h.written(on, h.ours), h.written(on, h.theirs)...) {
		if r.Verb == "delete" && !slices.Contains(h.deleted, r.Object.Name) {
			foreign = append(foreign, (*request)(r).String())
		}
	}
	return foreign
}

// needless are the writes of an executable after which an object had a version that it had before.
func (h *handOver) needless(on *audited, file string) []string {
	h.t.Helper()
	seen, found := map[string]bool{}, []string(nil)
	agent := filepath.Base(file) + "/"
	must.Succeed(h.t, cluster.EachRequest(on.log, `"responseObject"`, func(r *cluster.Request) {
		if r.Stage != "ResponseComplete" || r.Response.Code >= 300 || !writes((*request)(r)) || r.Verb == "delete" || r.Answer.Metadata.ResourceVersion == "" {
			return
		}
		version := r.Answer.Metadata.UID + " " + r.Answer.Metadata.ResourceVersion
		ended := r.Answer.Metadata.DeletionTimestamp != "" && len(r.Answer.Metadata.Finalizers) == 0 // What goes keeps its last version.
		if seen[version] && !ended && strings.HasPrefix(r.UserAgent, agent) {
			found = append(found, (*request)(r).String())
		}
		seen[version] = true
	}))
	return found
}
