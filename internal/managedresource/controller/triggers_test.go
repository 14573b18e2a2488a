package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MRT-3: which events of a ManagedResource lead to a run.
func TestPredicate(t *testing.T) {
	t.Parallel()
	type mr = resourcesv1alpha1.ManagedResource
	annotate := func(key, value string) func(*mr) {
		return func(m *mr) { m.Annotations = map[string]string{key: value} }
	}
	healthy := func(status resourcesv1alpha1.ConditionStatus) func(*mr) {
		return func(m *mr) {
			m.Status.Conditions = []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesHealthy, Status: status}}
		}
	}
	nothing := func(*mr) {}
	finalizer := func(m *mr) { m.Finalizers = []string{resourcesv1alpha1.FinalizerName} }
	anotherUID := func(m *mr) { m.UID = "another" }
	now := metav1.Now()
	foreign := "other"
	for name, tc := range map[string]struct {
		before, after func(*mr)
		want          bool
	}{
		"MRT-2 nothing": {nothing, nothing, false},
		"MRT-2 created anew in a gap of the watch":                       {nothing, anotherUID, true},
		"MRT-2 a later version of the same":                              {func(m *mr) { m.ResourceVersion = "8" }, func(m *mr) { m.ResourceVersion = "9" }, false},
		"MRT-2 generation":                                               {nothing, func(m *mr) { m.Generation = 2 }, true},
		"MRT-2 deletion":                                                 {nothing, func(m *mr) { m.DeletionTimestamp = &now }, true},
		"MRT-2 operation reconcile":                                      {nothing, annotate(resourcesv1alpha1.AnnotationOperation, "reconcile"), true},
		"MRT-2 operation migrate":                                        {nothing, annotate(resourcesv1alpha1.AnnotationOperation, "migrate"), true},
		"MRT-2 operation of no meaning":                                  {nothing, annotate(resourcesv1alpha1.AnnotationOperation, "x"), false},
		"MRB-22 wait-for-state is removed":                               {annotate(resourcesv1alpha1.AnnotationOperation, "wait-for-state"), nothing, true},
		"MRT-2 became unhealthy":                                         {healthy("True"), healthy("False"), true},
		"MRT-2 became unhealthy, first time":                             {nothing, healthy("False"), true},
		"MRT-2 unhealthy after unknown":                                  {healthy("Unknown"), healthy("False"), false},
		"MRT-2 became healthy":                                           {healthy("False"), healthy("True"), false},
		"MRT-2 is ignored now":                                           {nothing, annotate(resourcesv1alpha1.AnnotationIgnore, "1"), true},
		"MRT-2 is not ignored any more":                                  {annotate(resourcesv1alpha1.AnnotationIgnore, "1"), nothing, true},
		"MRT-3 ignored before and after":                                 {annotate(resourcesv1alpha1.AnnotationIgnore, "1"), func(m *mr) { annotate(resourcesv1alpha1.AnnotationIgnore, "1")(m); m.Generation = 2 }, false},
		"MRT-3 ignored, but being deleted":                               {annotate(resourcesv1alpha1.AnnotationIgnore, "1"), func(m *mr) { annotate(resourcesv1alpha1.AnnotationIgnore, "1")(m); m.DeletionTimestamp = &now }, true},
		"MRT-2/MRK-6 the other class has cleaned":                        {func(m *mr) { m.Finalizers = []string{resourcesv1alpha1.FinalizerName + "-x"} }, nothing, true},
		"MR-6 the finalizer was taken away":                              {finalizer, nothing, true},
		"MR-6 the finalizer is there now":                                {nothing, finalizer, false},
		"MR-6 the finalizer of what is going":                            {func(m *mr) { finalizer(m); m.DeletionTimestamp = &now }, func(m *mr) { m.DeletionTimestamp = &now }, false},
		"MRT-1/MRK-4 of another class":                                   {func(m *mr) { m.Spec.Class = &foreign }, func(m *mr) { m.Spec.Class = &foreign; m.Generation = 2 }, false},
		"MRT-1 given to another class, and the finalizer was taken away": {finalizer, func(m *mr) { m.Spec.Class = &foreign }, true},
		"MRT-1/MRK-4 handed over, finalizer is own": {nothing, func(m *mr) {
			m.Spec.Class = &foreign
			m.Generation = 2
			m.Finalizers = []string{resourcesv1alpha1.FinalizerName}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &mr{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, &mr{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			tc.before(before)
			tc.after(after)
			r := &Reconciler{Options: Options{Class: meta.NewClass(""), Tracker: objects.New()}}
			expect.Equal(t, (&Triggers{reconciler: r}).predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}), tc.want)
		})
	}
}

func TestBackOffIsBounded(t *testing.T) {
	t.Parallel()
	limiter := kit.RetriesUpTo(lastRetry)
	last := limiter.When(reconcile.Request{})
	expect.Equal(t, last, 5*time.Millisecond, "PRC-31: the first retry is after")
	for range 50 {
		last = limiter.When(reconcile.Request{})
	}
	expect.Equal(t, last, time.Minute, "MRB-20/MRC-12/PRC-31")
}

// delays notes after what time each ManagedResource is to be taken up.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after []time.Duration
}

func (d *delays) AddAfter(_ reconcile.Request, after time.Duration) { d.after = append(d.after, after) }

// OPB-16: after a gap in the watch of Secrets every ManagedResource is in doubt, and they are woken one after the other.
func TestGapsWakeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	r := &Reconciler{Options: Options{Tracker: objects.New()}}
	triggers, queue := &Triggers{reconciler: r}, &delays{}
	must.Succeed(t, triggers.queue.Start(t.Context(), queue))
	const many = 1000
	mr := &resourcesv1alpha1.ManagedResource{}
	for i := range many {
		mr.Namespace, mr.Name = "n", fmt.Sprint(i)
		r.states.begin(mr, lifecycle.RunBegins{})
	}
	triggers.SecretsMissed()
	slices.Sort(queue.after)
	if len(queue.after) != many || !r.states.of(steps.OwnerOf(mr)).IsOutOfSync() {
		t.Fatalf("%d of %d are woken, in doubt: %t", len(queue.after), many, r.states.of(steps.OwnerOf(mr)).IsOutOfSync())
	}
	for i := range many - 1 {
		pause := queue.after[i+1] - queue.after[i]
		must.True(t, pause >= time.Millisecond, "the next one is woken %s after the one at %s", pause, queue.after[i])
	}
	last := queue.after[many-1]
	expect.True(t, last <= time.Minute, "the last one is woken after %s", last)
}

// MRT-4: whoever looks late, and has the ManagedResource that had the name before, does not keep changes of Secrets from the one that is there, nor the
// sweep.
func TestLateLooksTakeNothingFromWhatHasTheName(t *testing.T) {
	t.Parallel()
	previous := func(f *fixture) *resourcesv1alpha1.ManagedResource {
		mr := f.get("m")
		mr.UID = "former"
		return mr
	}
	for name, look := range map[string]func(*fixture){
		"health":  func(f *fixture) { f.FirstRunPending(previous(f)) },
		"leaders": func(f *fixture) { f.states.contradicts(previous(f)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newApplied(t, "m", "a=1")
			look(f)
			owner := steps.OwnerOf(f.get("m"))
			swept := f.states.applied()
			expect.True(t, slices.Contains(swept, owner), "the sweep looks after %v", swept)
			told := f.states.secretChanged(owner, "m/2")
			expect.True(t, slices.Contains(told, owner), "a change of the Secret is told to %v", told)
		})
	}
}

func TestPeriodsDoNotMarchInStep(t *testing.T) {
	t.Parallel()
	r := &Reconciler{Options: Options{Config: config.ManagedResourceControllerConfig{SyncPeriod: &metav1.Duration{Duration: time.Minute}}}}
	seen := map[time.Duration]bool{}
	for range 50 {
		period := r.period()
		must.True(t, period >= 54*time.Second && period <= 66*time.Second, "OPB-16/PRC-32: got %s", period)
		seen[period] = true
	}
	expect.True(t, len(seen) >= 10, "OPB-16: only %d different periods", len(seen))
}
