package target

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var (
	podKind        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	replicaSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	theirs         = map[string]any{"app": "d"}
)

// MRP-10, MRP-11, MRB-30: the Pods of a Deployment are those of its ReplicaSets, and those without a controller that its selector matches.
func TestPodsOfADeployment(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(r *rollout)
		want    string
	}{
		"as many as wanted":     {func(*rollout) {}, "False"},
		"one more":              {func(r *rollout) { r.pod("q", "rs", theirs, nil) }, "True"},
		"one less":              {func(r *rollout) { r.delete(podKind, "n", "p") }, "True"},
		"of another Deployment": {func(r *rollout) { r.pod("q", "rs-other", theirs, nil) }, "False"},
		"a released ReplicaSet": {func(r *rollout) { r.set("rs-free", theirs, nil); r.pod("q", "rs-free", theirs, nil) }, "False"},
		"about to be adopted":   {func(r *rollout) { r.pod("q", "rs", theirs, map[string]any{"ownerReferences": nil}) }, "True"},
		"of another app":        {func(r *rollout) { r.pod("q", "rs", map[string]any{"app": "e"}, map[string]any{"ownerReferences": nil}) }, "False"},
		"terminating": {func(r *rollout) {
			r.pod("q", "rs", theirs, map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})
		}, "True"},
		"finished": {func(r *rollout) {
			r.putAs(podKind, "q", map[string]any{"labels": theirs, "ownerReferences": controlledBy("ReplicaSet", "rs")}, map[string]any{"status": map[string]any{"phase": "Succeeded"}})
		}, "False"},
	} {
		for once, label := range map[string]map[string]any{"created once": theirs, "labelled": managedLabel} {
			t.Run(name+", "+once, func(t *testing.T) {
				t.Parallel()
				r := newRollout(t, 1)
				r.putLabelledWith(label, "True", 1)
				r.set("rs", theirs, controlledBy("Deployment", "d"))
				r.set("rs-other", theirs, controlledBy("Deployment", "other"))
				r.pod("p", "rs", theirs, nil)
				c.prepare(r)
				if once == "created once" {
					r.refs[0].Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
				}
				r.follow(t)
				expect.Equal(t, r.progressing(t), c.want, "MRB-30: Progressing")
			})
		}
	}
}

// MR-30: a Deployment without the label that is created only once is read and counted until it is rolled out, and not in between audits.
func TestPodsOfDeploymentThatIsCreatedOnce(t *testing.T) {
	r := newRollout(t, 1)
	r.refs[0].Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	r.putLabelledWith(theirs, "True", 1)
	r.set("rs", theirs, controlledBy("Deployment", "d"))
	r.pod("p", "rs", theirs, nil)
	r.pod("old", "rs", theirs, nil)
	r.follow(t)
	assessment, err := r.assessor.Assess(t.Context(), r.refs)
	must.True(t, err == nil && !assessment.Covered && assessment.UnlabelledLive == 1 && assessment.PodsLeft == 1,
		"with an old Pod the assessment is %+v, %v", assessment, err)
	r.delete(podKind, "n", "old")
	must.Equal(t, r.progressing(t), "False", "without the old Pod Progressing")
	before := r.count("list", "get")
	assessment, err = r.assessor.Assess(t.Context(), r.refs)
	if err != nil || !assessment.Covered || assessment.UnlabelledLive != 0 || r.count("list", "get") != before {
		t.Errorf("at rest the assessment is %+v, %v, with %d requests", assessment, err, r.count("list", "get")-before)
	}
}

// MRT-13: Pods are counted once after the status of their Deployment has changed, and again while there are more than wanted.
func TestPodsAreCountedOnChanges(t *testing.T) {
	r := newRollout(t, 1)
	r.set("rs", managedLabel, controlledBy("Deployment", "d"))
	r.pod("p", "rs", managedLabel, nil)
	r.pod("old", "rs", managedLabel, nil)
	r.follow(t)
	assessment, err := r.assessor.Assess(t.Context(), r.refs)
	must.True(t, err == nil && assessment.Problem && assessment.PodsLeft == 1,
		"BH-MR-20/MRP-10: with an old Pod the assessment is %+v, %v", assessment, err)
	_, known := r.assessor.KnownHealth(r.refs)
	expect.True(t, !known && !r.assessor.covered(r.refs), "MRT-14: the Deployment counts as rolled out")
	r.delete(podKind, "n", "old")
	must.Equal(t, r.progressing(t), "False", "without the old Pod Progressing")
	before := r.count("list", "get")
	for range 3 {
		got := r.progressing(t)
		must.True(t, got == "False" && r.assessor.covered(r.refs), "at rest Progressing is %s", got)
	}
	if _, known := r.assessor.KnownHealth(r.refs); !known || r.count("list", "get") != before {
		t.Errorf("MRT-13: at rest %d requests were sent", r.count("list", "get")-before)
	}
	judged := make(chan struct{}, 100)
	r.Subscribe(objects.Subscriber{Health: func(objects.Owner) { judged <- struct{}{} }})
	r.pod("surge", "rs", managedLabel, nil)
	r.putLabelledWith(managedLabel, "True", 1) // Any change of the status gives it another version.
	eventually(t, "MRT-13: the ManagedResource is judged anew", func() bool { return len(judged) > 0 })
	expect.Equal(t, r.progressing(t), "True", "with a Pod more Progressing")
}

// MRT-13: the Pods of many Deployments of a namespace are counted together, at most once a second.
func TestPodsOfManyDeployments(t *testing.T) {
	const n = 50
	r := newRollout(t, 0)
	var refs []objects.Ref
	for i := range n {
		r.put(deploymentKind, "n", fmt.Sprint("d", i), rolledOutDeployment("True", 0))
		refs = append(refs, refTo(deploymentKind, "n", fmt.Sprint("d", i)))
	}
	r.Watches.Track(owner, refs)
	run(t, r.Watches)
	eventually(t, "all are known", func() bool { return r.Progress(owner).AllKnown && r.Covered(refs[0]) })
	before, began := r.count("list", "get"), time.Now()
	a := NewAssessor(r.client, r.Tracker, r.Watches, clocktesting.NewFakePassiveClock(began))
	for ref := range slices.Values(refs) {
		assessment, err := a.Assess(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(ref)})
		must.True(t, err == nil && !assessment.Problem && assessment.Covered, "%+v, %v", assessment, err)
	}
	expect.Equal(t, r.count("list", "get")-before, 2, "requests for the Pods of %d Deployments", n)
	r.put(deploymentKind, "n", "d0", rolledOutDeployment("True", 1))
	eventually(t, "the change is known", func() bool { return !a.covered([]resourcesv1alpha1.ObjectReference{entryOf(refs[0])}) })
	_, err := a.Assess(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(refs[0])})
	expect.True(t, err == nil && time.Since(began) >= countPause, "counted again after %s: %v", time.Since(began), err)
}
