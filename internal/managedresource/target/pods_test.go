package target

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

func unlabelledRef(name string) objects.Ref { return withoutLabel(refTo(deploymentKind, "n", name)) }

// createdOnly makes the Deployment of a rollout one that is created only once, so that nothing of it has the managed-by label.
func (r *rollout) createdOnly(t *testing.T, replicas int) objects.Ref {
	t.Helper()
	r.putAs(deploymentKind, "d", map[string]any{"labels": theirs, "generation": 1}, map[string]any{
		"spec": map[string]any{"replicas": replicas, "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}},
		"status": map[string]any{"observedGeneration": 1, "conditions": []any{map[string]any{"type": "Available", "status": "True"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}},
	})
	r.set("rs", theirs, controlledBy("Deployment", "d"))
	r.refs[0].Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	return objects.RefOf(&r.refs[0])
}

var theirs = map[string]any{"app": "d"}

// MR-30, MRT-13: a Deployment that is created only once, and its Pods, have no managed-by label. A Pod of it that goes is told of at once, and at rest
// nothing is asked for.
func TestPodsOfCreateOnlyDeployment(t *testing.T) {
	r := newRollout(t, 1)
	ref := r.createdOnly(t, 1)
	r.pod("p", "rs", theirs, nil)
	r.pod("old", "rs", theirs, nil)
	run(t, r.Watches)
	r.Watches.Track(owner, []objects.Ref{ref})
	eventually(t, "all is covered", func() bool { return r.Covered(ref) && r.PodsCovered(ref) && r.Progress(owner).AllKnown })
	if got := r.progressing(t); got != "True" {
		t.Fatalf("MRP-10: with an old Pod Progressing is %s", got)
	}
	reported := make(chan struct{}, 100)
	r.Subscribe(objects.Subscriber{Verdict: func(objects.Owner) { reported <- struct{}{} }})
	before := r.count("get") // Who counts Pods without watches begins with the Deployment.
	r.delete(podKind, "n", "old")
	eventually(t, "MRT-13: it is told that an old Pod has gone", func() bool { return len(reported) > 0 })
	for range 3 {
		if got := r.progressing(t); got != "False" {
			t.Fatalf("without the old Pod Progressing is %s", got)
		}
	}
	if !r.assessor.covered(r.refs) {
		t.Error("MRT-14: it counts as something to look at each period")
	}
	if got := r.count("get") - before; got > 0 {
		t.Errorf("three judgements at rest cost %d reads", got)
	}
}

// MR-30, MRP-10: what is scaled down to nothing is not rolled out while its Pods are still there.
func TestScaledToNothingWithoutLabels(t *testing.T) {
	r := newRollout(t, 0)
	ref := r.createdOnly(t, 0)
	r.pod("p", "rs", theirs, map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"})
	run(t, r.Watches)
	r.Watches.Track(owner, []objects.Ref{ref})
	eventually(t, "all is covered", func() bool { return r.Covered(ref) && r.PodsCovered(ref) && r.Progress(owner).AllKnown })
	if got := r.progressing(t); got != "True" {
		t.Errorf("while its Pod terminates Progressing is %s", got)
	}
	if _, ok := r.assessor.KnownHealth(r.refs); ok {
		t.Error("the ledger takes it for rolled out")
	}
}

// Only Deployments that are created only once need more watches than those of labelled objects, in their own namespaces.
func TestWatchesOfPods(t *testing.T) {
	labelled, unlabelled := refTo(deploymentKind, "n", "d"), unlabelledRef("u")
	w := NewWatches(nil, objects.New(), WatchOptions{})
	w.Track(owner, []objects.Ref{labelled})
	for _, s := range []scope{{gvk: podKind}, {gvk: replicaSetKind}, {gvk: deploymentKind}} {
		if w.active[s] == nil || len(w.active) != 3 {
			t.Errorf("for a labelled Deployment: %v", w.active)
		}
	}
	w = NewWatches(nil, objects.New(), WatchOptions{})
	w.Track(owner, []objects.Ref{unlabelled})
	for _, s := range []scope{{podKind, "n", countedPods}, {replicaSetKind, "n", countedPods}, {deploymentKind, "n", "u"}} {
		if w.active[s] == nil || len(w.active) != 3 {
			t.Errorf("for one without the label: %v", w.active)
		}
	}
	if w.wide.has(podKind) {
		t.Error("Pods that are managed themselves would have a watch of all Pods")
	}
}

// bothCounts has a labelled Pod that both watches of a namespace report, one that only the wider one reports, and the sinks of both.
type bothCounts struct {
	*Watches
	*objects.Tracker
	labelled, all *sink
}

func newBothCounts(w *Watches, l *objects.Tracker) *bothCounts {
	sinkOf := func(s scope) *sink {
		return &sink{watches: w, scope: s, active: watchSession{activeWatch: newActiveWatch()}}
	}
	b := &bothCounts{w, l, sinkOf(scope{gvk: podKind}), sinkOf(scope{podKind, "n", countedPods})}
	for _, from := range []podSource{labelled, unfiltered} {
		w.pods.setReplicaSet(from, "n", "rs", "d")
	}
	return b
}

func podOf(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", UID: "rs", Controller: ptr.To(true)}}}}
}

func (b *bothCounts) relist(t *testing.T, s *sink, names ...string) {
	t.Helper()
	_, err := s.list(t.Context(), scopeRequests{list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		pods := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, name := range names {
			pods.Items = append(pods.Items, *podOf(name))
		}
		return pods, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func (b *bothCounts) want(t *testing.T, when string, wanted, wantedOfAll int64) {
	t.Helper()
	if got, gotAll := b.pods.of(labelled, "d"), b.pods.of(unfiltered, "d"); got != wanted || gotAll != wantedOfAll {
		t.Errorf("%s: %d labelled Pods and %d in all are counted, want %d and %d", when, got, gotAll, wanted, wantedOfAll)
	}
}

// MRB-30: where labelled and other Pods are watched, what one of the watches does not have says nothing of what the other one reports, and what is gone
// goes from the count of each that tells so.
func TestWatchesOfPodsDoNotContradict(t *testing.T) {
	l := objects.New()
	b := newBothCounts(NewWatches(nil, l, WatchOptions{Log: logr.Discard()}), l)
	b.relist(t, b.labelled, "both")
	b.relist(t, b.all, "both", "bare")
	b.want(t, "after the first lists", 1, 2)
	b.relist(t, b.labelled, "both")
	b.want(t, "after a gap of the labelled ones", 1, 2)
	b.relist(t, b.all, "bare")
	b.want(t, "after a gap of all", 1, 1)
	b.relist(t, b.labelled)
	b.want(t, "after a gap of the labelled ones in which one has gone", 0, 1)

	for _, s := range []*sink{b.labelled, b.all} {
		if err := s.Add(podOf("both")); err != nil {
			t.Fatal(err)
		}
	}
	b.want(t, "with a new one", 1, 2)
	if err := b.labelled.Delete(podOf("both")); err != nil {
		t.Fatal(err)
	}
	if err := b.all.Update(podOf("both")); err != nil {
		t.Fatal(err)
	}
	b.want(t, "when it has lost its label", 0, 2)
	if err := b.all.Delete(podOf("both")); err != nil {
		t.Fatal(err)
	}
	b.want(t, "when it is gone", 0, 1)
}

// MRB-38: the watch that only counts says nothing of a Pod that is managed itself: another one reports it.
func TestCountedPodIsNotTakenForManaged(t *testing.T) {
	l := objects.New()
	w := NewWatches(nil, l, WatchOptions{Log: logr.Discard()})
	b := newBothCounts(w, l)
	pod := refTo(podKind, "n", "both")
	w.Track(owner, []objects.Ref{pod})
	b.relist(t, b.labelled, "both")
	if err := b.all.Delete(podOf("both")); err != nil {
		t.Fatal(err)
	}
	if !l.Get(pod.ID).Present {
		t.Error("it is taken for gone")
	}
}

// Pods of which one watch tells no more stay in the count of the other one.
func TestOneOfTwoWatchesOfPodsEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end           objects.Owner
		labelled, all int64
	}{"labelled": {owner, 0, 2}, "all": {objects.Owner{Name: "other"}, 1, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, err := NewClient(&rest.Config{Host: "http://target", QPS: -1}, &http.Client{Transport: hanging{}}, NewMetrics(prometheus.NewRegistry()))
				if err != nil {
					t.Fatal(err)
				}
				l := objects.New()
				w := NewWatches(client, l, WatchOptions{})
				b := newBothCounts(w, l)
				w.Track(owner, []objects.Ref{refTo(deploymentKind, "n", "d")})
				w.Track(objects.Owner{Name: "other"}, []objects.Ref{unlabelledRef("u")})
				b.relist(t, b.labelled, "both")
				b.relist(t, b.all, "both", "bare")
				w.Track(c.end, nil)
				b.want(t, "while it lingers", 1, 2)
				time.Sleep(2 * linger)
				synctest.Wait()
				b.want(t, "after its end", c.labelled, c.all)
			})
		})
	}
}
