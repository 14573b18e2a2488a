package health

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var key = types.NamespacedName{Namespace: "ns", Name: "mr"}

// fixture judges one applied ManagedResource; what its objects are like is what a test says.
type fixture struct {
	*Reconciler
	*testing.T
	source client.Client
	clock  *clocktesting.FakePassiveClock
	// writes counts status writes; before is called ahead of each.
	writes int
	before func()

	rolling   string
	unhealthy string
	awaited   bool
}

// oldReader is a cache that gets no news.
type oldReader struct {
	client.Reader
	old *resourcesv1alpha1.ManagedResource
}

func (s *oldReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.old.DeepCopyInto(object.(*resourcesv1alpha1.ManagedResource))
	return nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))}
	scheme := runtime.NewScheme()
	must.Succeed(t, resourcesv1alpha1.AddToScheme(scheme))
	mr := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u", Generation: 1},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: "s"}}},
		Status: resourcesv1alpha1.ManagedResourceStatus{ObservedGeneration: 1, Conditions: []resourcesv1alpha1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionTrue}}},
	}
	f.source = crfake.NewClientBuilder().WithScheme(scheme).WithObjects(mr).WithStatusSubresource(mr).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if f.before != nil {
				before := f.before
				f.before = nil
				before()
			}
			f.writes++
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		},
	}).Build()
	assess := func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
		a := fine()
		if f.unhealthy != "" {
			a.Problem, a.Health.Status, a.Health.Reason, a.Health.Message = true, resourcesv1alpha1.ConditionFalse, "DaemonSetProblem", f.unhealthy
		}
		if f.rolling != "" {
			a.Problem, a.Progressing.Status, a.Progressing.Reason, a.Progressing.Message = true, resourcesv1alpha1.ConditionTrue, "DaemonSetProblem", f.rolling
		}
		return a, nil
	}
	f.Reconciler = New(Options{
		Config: config.HealthControllerConfig{SyncPeriod: &metav1.Duration{Duration: time.Minute}}, Class: meta.NewClass(""), Clock: f.clock,
		Statuses: source.NewStatuses(f.source, f.source, f.source, f.clock, nil),
		Await:    func(*resourcesv1alpha1.ManagedResource) bool { return f.awaited },
		Assess:   assess,
		Confirm: func(ctx context.Context, refs []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
			return f.Assess(ctx, refs)
		},
	})
	return f
}

func (f *fixture) run() reconcile.Result {
	f.Helper()
	result, err := f.Reconcile(f.Context(), reconcile.Request{NamespacedName: key})
	must.Succeed(f, err)
	return result
}

func (f *fixture) get() *resourcesv1alpha1.ManagedResource {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(f, f.source.Get(f.Context(), key, mr))
	return mr
}

func (f *fixture) condition(conditionType resourcesv1alpha1.ConditionType) string {
	f.Helper()
	c := meta.Conditions(f.get().Status.Conditions).Get(conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + ": " + c.Message
}

// MRP-5: what is yes or no is written at once, and a message that counts the nodes of a roll-out at most every ten seconds.
func TestMessagesAreWrittenLessOften(t *testing.T) {
	f := newFixture(t)
	f.run()
	got := f.condition(resourcesv1alpha1.ResourcesProgressing)
	must.True(t, got == "False: Fine." && f.writes == 1, "%s after %d writes", got, f.writes)
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	for node := range 200 { // A node every 200 ms.
		f.rolling = fmt.Sprintf("%d of 200 updated", node)
		result := f.run()
		if node == 0 && f.writes != 2 {
			t.Fatalf("that the roll-out begins is written at once: %d writes", f.writes)
		}
		if present := f.condition(resourcesv1alpha1.ResourcesProgressing); present != "True: "+f.rolling && (result.RequeueAfter <= 0 || result.RequeueAfter > messagePause) {
			t.Fatalf("what is not written must be looked at again soon, got %s", result.RequeueAfter)
		}
		f.clock.SetTime(f.clock.Now().Add(200 * time.Millisecond))
	}
	expect.True(t, f.writes <= 2+4, "%d writes for forty seconds of roll-out", f.writes)
	f.clock.SetTime(f.clock.Now().Add(messagePause))
	f.run()
	expect.Equal(t, f.condition(resourcesv1alpha1.ResourcesProgressing), "True: 199 of 200 updated", "the last message is missing")
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	f.rolling, f.unhealthy = "", "sick"
	f.run()
	expect.Equal(t, f.condition(resourcesv1alpha1.ResourcesProgressing), "False: Fine.", "the end is written at once")
	expect.Equal(t, f.condition(resourcesv1alpha1.ResourcesHealthy), "False: sick", "and so is the other condition")
}

// MRH-2: a judgement about an inventory that was exchanged meanwhile is not written.
func TestStaleJudgement(t *testing.T) {
	f := newFixture(t)
	f.before = func() {
		mr := f.get()
		mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "new"}}}
		must.Succeed(t, f.source.Status().Update(f.Context(), mr))
	}
	f.run()
	expect.Equal(t, f.condition(resourcesv1alpha1.ResourcesHealthy), "")
}

// TestTimeOfAJudgement: a judgement has no more time than the sync period.
func TestTimeOfAJudgement(t *testing.T) {
	f := newFixture(t)
	assess, left := f.Assess, time.Duration(0)
	f.Assess = func(ctx context.Context, refs []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
		if deadline, limited := ctx.Deadline(); limited {
			left = time.Until(deadline)
		}
		return assess(ctx, refs)
	}
	f.run()
	expect.True(t, left > 0 && left <= time.Minute, "PRC-30/MRC-13: a judgement has %s", left)
}

// MRH-1, MRH-2: who is not judged.
func TestNotJudged(t *testing.T) {
	for name, change := range map[string]func(*fixture, *resourcesv1alpha1.ManagedResource){
		"MRH-1/BH-MR-7 ignored": func(_ *fixture, mr *resourcesv1alpha1.ManagedResource) {
			mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
		},
		"MRK-8/MRP-1 of another class": func(_ *fixture, mr *resourcesv1alpha1.ManagedResource) { class := "other"; mr.Spec.Class = &class },
		"MRK-6 another class has not cleaned up yet": func(f *fixture, mr *resourcesv1alpha1.ManagedResource) {
			f.Class = meta.NewClass("b")
			mr.Spec.Class, mr.Finalizers = ptr.To("b"), []string{resourcesv1alpha1.FinalizerName}
		},
		"MRH-2 not looked at yet":        func(f *fixture, _ *resourcesv1alpha1.ManagedResource) { f.awaited = true },
		"MRH-2/BH-HL-1 never reconciled": func(_ *fixture, mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions = nil },
		"MRH-2 not applied, and failed": func(_ *fixture, mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Conditions[0].Status = resourcesv1alpha1.ConditionFalse
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			mr := f.get()
			change(f, mr)
			must.Succeed(t, f.source.Update(t.Context(), mr))
			mr.ResourceVersion = f.get().ResourceVersion
			change(f, mr)
			must.Succeed(t, f.source.Status().Update(t.Context(), mr))
			f.run()
			expect.Equal(t, f.writes, 0, "writes")
		})
	}
}

// MRT-14: every check of a ManagedResource that has a health is followed by one a period later, and so is one that came before it is applied.
// A later event brings back a ManagedResource that is ignored, of another class, being deleted or gone.
func TestJudgedAgainAfterAPeriod(t *testing.T) {
	period := func(factor int64) (least, most time.Duration) {
		whole := time.Duration(factor) * time.Minute
		return whole * 9 / 10, whole * 11 / 10
	}
	for name, tc := range map[string]struct {
		change  func(*fixture, *resourcesv1alpha1.ManagedResource)
		periods int64
	}{
		"MRT-14/healthy, watches tell of the rest": {func(*fixture, *resourcesv1alpha1.ManagedResource) {}, rarely},
		"MRH-11/MRP-7 a problem":                   {func(f *fixture, _ *resourcesv1alpha1.ManagedResource) { f.rolling = "broken" }, 1},
		"MRT-14/not looked at yet":                 {func(f *fixture, _ *resourcesv1alpha1.ManagedResource) { f.awaited = true }, 1},
		"MRT-14/not applied yet": {func(_ *fixture, mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Conditions[0].Status = resourcesv1alpha1.ConditionFalse
		}, 1},
		"MRT-14/ignored": {func(_ *fixture, mr *resourcesv1alpha1.ManagedResource) {
			mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
		}, 0},
		"MRT-14/of another class": {func(_ *fixture, mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			mr := f.get()
			tc.change(f, mr)
			must.Succeed(t, f.source.Update(t.Context(), mr))
			mr.ResourceVersion = f.get().ResourceVersion
			tc.change(f, mr)
			must.Succeed(t, f.source.Status().Update(t.Context(), mr))
			least, most := period(tc.periods)
			got := f.run().RequeueAfter
			expect.True(t, got >= least && got <= most, "MRT-14: looked at again after %s, want %s to %s", got, least, most)
		})
	}
	t.Run("MRT-14/a problem, and a cache that has not got the status yet", func(t *testing.T) {
		f := newFixture(t)
		f.Config.SyncPeriod = &metav1.Duration{Duration: 10 * time.Second}
		f.Statuses = source.NewStatuses(&oldReader{f.source, f.get()}, f.source, f.source, f.clock, nil)
		f.rolling = "broken"
		if got := f.run().RequeueAfter; got < 9*time.Second || got > 11*time.Second || f.writes != 1 {
			t.Errorf("MRT-14: looked at again after %s, with %d writes", got, f.writes)
		}
	})
	t.Run("MRT-14/being deleted, then gone", func(t *testing.T) {
		f := newFixture(t)
		mr := f.get()
		mr.Finalizers = []string{"example.com/wait"}
		must.Succeed(t, f.source.Update(t.Context(), mr))
		must.Succeed(t, f.source.Delete(t.Context(), mr))
		expect.Equal(t, f.run(), (reconcile.Result{}), "MRT-14: being deleted")
		mr = f.get()
		mr.Finalizers = nil
		must.Succeed(t, f.source.Update(t.Context(), mr))
		expect.Equal(t, f.run(), (reconcile.Result{}), "MRT-14: gone")
	})
}

// MRT-8: which events of a ManagedResource concern its health.
func TestPredicate(t *testing.T) {
	type mr = resourcesv1alpha1.ManagedResource
	applied := func(m *mr) {
		m.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: resourcesv1alpha1.ConditionTrue}}
	}
	waits := func(m *mr) { m.Finalizers = []string{resourcesv1alpha1.FinalizerName + "-b"} }
	ignored := func(m *mr) { m.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"} }
	nothing := func(*mr) {}
	for name, tc := range map[string]struct {
		before, after func(*mr)
		want          bool
	}{
		"MRT-8 nothing":                       {nothing, nothing, false},
		"MRT-8 was applied":                   {nothing, applied, true},
		"MRT-8 is not ignored any more":       {ignored, nothing, true},
		"MRK-6 another class has cleaned up":  {waits, nothing, true},
		"MRK-6 it has not":                    {nothing, waits, false},
		"MRT-8 is ignored":                    {nothing, ignored, false},
		"MRT-8 created anew in a gap":         {nothing, func(m *mr) { m.UID = "another" }, true},
		"MRT-8 another generation is no news": {nothing, func(m *mr) { m.Generation = 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &mr{}, &mr{}
			tc.before(before)
			tc.after(after)
			r := New(Options{Class: meta.NewClass("")})
			expect.Equal(t, r.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}), tc.want)
		})
	}
}

// added notes what is to be judged after a while.
type added struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after []time.Duration
}

func (a *added) AddAfter(_ reconcile.Request, after time.Duration) { a.after = append(a.after, after) }

// MRT-8: what a process that was the leader before has written last is judged anew, and what this one has written is not.
func TestLastWordOfAFormerLeader(t *testing.T) {
	f, queue := newFixture(t), &added{}
	f.must(f.queue.Start(t.Context(), queue))
	f.run()
	before := f.get()
	expect.True(t, !f.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before}) && len(queue.after) == 0,
		"our own judgement is judged anew")
	after := f.get()
	after.Status.Conditions = slices.Clone(after.Status.Conditions)
	for i := range after.Status.Conditions {
		if after.Status.Conditions[i].Type == resourcesv1alpha1.ResourcesProgressing {
			after.Status.Conditions[i].Status = resourcesv1alpha1.ConditionTrue
		}
	}
	f.must(f.source.Status().Update(f.Context(), after))
	// After a pause: that one may see things otherwise, and do the same.
	if f.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) || len(queue.after) != 1 || queue.after[0] != messagePause {
		t.Errorf("what somebody else says is judged anew after %v", queue.after)
	}
	f.clock.SetTime(f.clock.Now().Add(messagePause))
	f.run()
	expect.Equal(t, f.condition(resourcesv1alpha1.ResourcesProgressing), "False: Fine.", "the condition")
}

func (f *fixture) waits() bool { return f.known[key] != nil && !f.known[key].unsettled.IsZero() }

func (f *fixture) must(err error) {
	f.Helper()
	must.Succeed(f, err)
}

// MRH-1: what waits for an object to come back is forgotten when the ManagedResource is ignored, given away, deleted or gone.
func TestNothingIsRememberedOfOthers(t *testing.T) {
	other := "other"
	for name, change := range map[string]func(*fixture, *resourcesv1alpha1.ManagedResource) error{
		"ignored": func(f *fixture, mr *resourcesv1alpha1.ManagedResource) error {
			mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
			return f.source.Update(f.Context(), mr)
		},
		"of another class": func(f *fixture, mr *resourcesv1alpha1.ManagedResource) error {
			mr.Spec.Class = &other
			return f.source.Update(f.Context(), mr)
		},
		"being deleted": func(f *fixture, mr *resourcesv1alpha1.ManagedResource) error {
			mr.Finalizers = []string{resourcesv1alpha1.FinalizerName}
			if err := f.source.Update(f.Context(), mr); err != nil {
				return err
			}
			return f.source.Delete(f.Context(), mr)
		},
		"gone": func(f *fixture, mr *resourcesv1alpha1.ManagedResource) error { return f.source.Delete(f.Context(), mr) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Assess = func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
				return target.Assessment{Unsettled: true}, nil
			}
			f.run()
			must.True(t, f.waits(), "it does not wait")
			mr := &resourcesv1alpha1.ManagedResource{}
			must.Succeed(t, f.source.Get(t.Context(), key, mr))
			must.Succeed(t, change(f, mr))
			f.run()
			expect.False(t, f.waits(), "it is remembered")
		})
	}
}

// MRT-8: two processes that see the target differently, such as two leaders for a moment, do not contradict each other without a pause.
func TestTwoProcessesContradictEachOther(t *testing.T) {
	f, g := newFixture(t), newFixture(t)
	g.source = f.source
	g.Statuses = source.NewStatuses(f.source, f.source, f.source, g.clock, nil)
	g.rolling = "not rolled out, as seen from here"
	writes := f.writes
	pending := map[*fixture]bool{f: true, g: true}
	rounds := 0
	for len(pending) > 0 && rounds < 100 {
		for _, who := range []*fixture{f, g} {
			if !pending[who] {
				continue
			}
			delete(pending, who)
			rounds++
			before := f.get()
			who.run()
			if after := f.get(); after.ResourceVersion != before.ResourceVersion {
				for _, reported := range []*fixture{f, g} {
					if reported.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
						pending[reported] = true
					}
				}
			}
		}
	}
	if len(pending) > 0 {
		t.Errorf("after %d judgements and %d writes, with no time gone by, there is still no end: %s", rounds, f.writes-writes, f.condition(resourcesv1alpha1.ResourcesProgressing))
	}
}
