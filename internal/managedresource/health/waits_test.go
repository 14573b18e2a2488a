package health

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// A missing object is reported if it is not back after some three seconds, also if news of other objects wake the controller meanwhile.
func TestNewsShortenTheWait(t *testing.T) {
	f := newFixture(t)
	f.Assess = func(context.Context, []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
		return missing(true), nil
	}
	for changed := range 10 { // One after each changeDelay.
		f.run()
		waited := time.Duration(changed) * changeDelay
		must.Equal(t, f.condition(resourcesv1alpha1.ResourcesHealthy), "", "reported after %s", waited)
		f.clock.SetTime(f.clock.Now().Add(changeDelay))
	}
}

// MRP-5: a message is written within ten seconds of ours, also if a former leader, whose clock was ahead, wrote the last one.
func TestClockOfAFormerLeader(t *testing.T) {
	f := newFixture(t)
	f.rolling = "1 of 200 updated"
	f.run()
	mr := f.get()
	for i := range mr.Status.Conditions {
		mr.Status.Conditions[i].LastUpdateTime = metav1.NewTime(f.clock.Now().Add(10 * time.Minute))
	}
	f.must(f.source.Status().Update(f.Context(), mr))
	f.rolling = "199 of 200 updated"
	judgements := 0
	for end := f.clock.Now().Add(time.Minute); f.clock.Now().Before(end); judgements++ {
		result := f.run()
		f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
	}
	expect.Equal(t, f.condition(resourcesv1alpha1.ResourcesProgressing), "True: 199 of 200 updated", "after a minute and %d judgements", judgements)
}

// MRH-10: a judgement that is not written, because the content it is about was exchanged, is made again soon.
func TestUnwrittenJudgementIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.rolling = "the roll-out has begun"
	f.before = nil
	old := f.get()
	assess := f.Assess
	f.Assess = func(ctx context.Context, refs []resourcesv1alpha1.ObjectReference) (target.Assessment, error) {
		assessment, err := assess(ctx, refs)
		mr := f.get() // The run for a new generation with the same objects ends meanwhile.
		mr.Status.ObservedGeneration++
		f.must(f.source.Status().Update(ctx, mr))
		f.predicate().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: f.get()})
		return assessment, err
	}
	result := f.run()
	if got := f.condition(resourcesv1alpha1.ResourcesProgressing); got != "True: the roll-out has begun" && result.RequeueAfter > messagePause {
		t.Errorf("the condition is %s, and it is looked at again in %s", got, result.RequeueAfter)
	}
}

// A held deletion leaves the objects as they are: their health is still judged.
func TestHealthOfWhatIsLeftAlone(t *testing.T) {
	for reason, want := range map[string]resourcesv1alpha1.ConditionStatus{
		resourcesv1alpha1.ReasonDeletionHeld: resourcesv1alpha1.ConditionFalse,
		resourcesv1alpha1.ReasonApplyFailed:  "",
	} {
		f := newFixture(t)
		mr := f.get()
		mr.Status.Conditions[0].Status, mr.Status.Conditions[0].Reason = resourcesv1alpha1.ConditionFalse, reason
		must.Succeed(t, f.source.Status().Update(t.Context(), mr))
		f.unhealthy = "no Pods"
		f.run()
		expect.Equal(t, meta.Conditions(f.get().Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy), want, "MRX-21 %s", reason)
	}
}
