package turns

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
)

// source is an informer of ManagedResources that has told all there are.
type source struct {
	toolscache.ResourceEventHandler
}

func (s *source) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	s.ResourceEventHandler = handler
	return s, nil
}
func (*source) HasSynced() bool                          { return true }
func (*source) HasSyncedChecker() toolscache.DoneChecker { return nil }

func sum(content int) string { return fmt.Sprintf("%016x", content) + strings.Repeat("0", 48) }

// managed is a ManagedResource of the group g, applied and healthy.
func managed(namespace string, content int, at time.Time) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", Annotations: map[string]string{
		resourcesv1alpha1.AnnotationRolloutGroup: "g",
	}}}
	mr.Status.SecretsDataChecksum = ptr.To(sum(content))
	say(mr, at, resourcesv1alpha1.ConditionTrue)
	return mr
}

func say(mr *resourcesv1alpha1.ManagedResource, at time.Time, health resourcesv1alpha1.ConditionStatus) {
	mr.Status.Conditions, _ = meta.Conditions(mr.Status.Conditions).With(at.Truncate(time.Second), meta.Applied(resourcesv1alpha1.ConditionTrue, "x", "x"),
		meta.ConditionChange{Type: resourcesv1alpha1.ResourcesHealthy, Status: health, Reason: "x", Message: "x"})
}

func poll(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return holds(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "g", Labels: map[string]string{resourcesv1alpha1.LabelRolloutGroup: ""}},
		Data:       map[string]string{"waves": "[{namespaces: [a]}]", "pause": "0s"},
	}
}

func newTurns(t *testing.T, client *fake.Clientset, clock *clocktesting.FakePassiveClock) (*Turns, *source) {
	t.Helper()
	turns, s := New(Options{
		Namespace: "garden", Source: client, Counts: func(*resourcesv1alpha1.ManagedResource) bool { return true }, Clock: clock,
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
	}), &source{}
	if err := turns.Follow(s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = turns.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return turns, s
}

// TestTurns: who waits is woken when its turn comes, and when there is something else to report; the halt is told, counted and shown.
func TestTurns(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	client := fake.NewClientset(configMap())
	turns, s := newTurns(t, client, clock)
	woken := make(chan string, 100)
	for _, namespace := range []string{"a", "b"} {
		defer turns.Subscribe(namespace, func(key types.NamespacedName, isTurn bool) { woken <- fmt.Sprint(namespace, key.Namespace, isTurn) })()
	}
	a, b := managed("a", 1, clock.Now().Add(-time.Hour)), managed("b", 1, clock.Now().Add(-time.Hour))
	s.OnAdd(a, true)
	s.OnAdd(b, true)
	if answer := turns.Ask(b, sum(2)); answer.Go {
		t.Error("ROL-4: let go while nobody knows of the first wave")
	}
	poll(t, "ROL-4: the first wave has its turn", func() bool { return turns.Ask(a, sum(2)).Go })
	if answer := turns.Ask(b, sum(2)); answer.Go || answer.Condition.Reason != resourcesv1alpha1.ReasonRolloutWaiting {
		t.Errorf("ROL-4: the second wave does not wait: %+v", answer)
	}

	a = a.DeepCopy()
	a.Annotations[resourcesv1alpha1.AnnotationRolloutApplied] = rollout.NewRecord(rollout.Revision(sum(2)), clock.Now(), nil).String()
	a.Status.SecretsDataChecksum = ptr.To(sum(2))
	clock.SetTime(clock.Now().Add(time.Second))
	say(a, clock.Now(), resourcesv1alpha1.ConditionFalse)
	began := time.Now()
	s.OnUpdate(nil, a)
	for <-woken != "bbfalse" {
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("ROL-5: the halt takes %s", took)
	}
	if change := turns.Standing(b); change == nil || change.Reason != resourcesv1alpha1.ReasonRolloutHalted || !strings.Contains(change.Message, "a/m failed") {
		t.Errorf("ROL-5: %+v", change)
	}
	poll(t, "ROL-9: the halt is shown and told", func() bool {
		events, err := client.CoreV1().Events("garden").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(events.Items) == 1 && events.Items[0].Reason == reasonHalted && total(t, turns.Metrics.halted) == 1 &&
			total(t, turns.Metrics.halts) == 1 && total(t, turns.Metrics.members.WithLabelValues("g", "failed")) == 1
	})

	a = a.DeepCopy()
	clock.SetTime(clock.Now().Add(time.Second))
	say(a, clock.Now(), resourcesv1alpha1.ConditionTrue)
	s.OnUpdate(nil, a)
	for <-woken != "bbtrue" {
	}
	if !turns.Ask(b, sum(2)).Go {
		t.Error("ROL-4: woken, and it is not its turn")
	}
	s.OnDelete(a)
	s.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: b})
	if n := total(t, turns.Metrics.members); n != 0 || len(turns.groups) != 0 || len(turns.groupOf) != 0 {
		t.Errorf("ROL-9: series of a group that nobody is in with %v, %d groups", n, len(turns.groups))
	}
}

// TestOlderVersion: a run that asks with a ManagedResource from before the watch's last event takes nothing back; an event of the watch always counts.
func TestOlderVersion(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	turns, s := newTurns(t, fake.NewClientset(configMap()), clock)
	failed, b := managed("a", 2, clock.Now().Add(-time.Hour)), managed("b", 1, clock.Now().Add(-time.Hour))
	failed.ResourceVersion = "12"
	failed.Annotations[resourcesv1alpha1.AnnotationRolloutApplied] = rollout.NewRecord(rollout.Revision(sum(2)), clock.Now(), nil).String()
	clock.SetTime(clock.Now().Add(time.Second))
	say(failed, clock.Now(), resourcesv1alpha1.ConditionFalse)
	s.OnAdd(failed, true)
	s.OnAdd(b, true)
	turns.Ask(failed, sum(2))
	poll(t, "ROL-5: the failed member halts the group", func() bool {
		answer := turns.Ask(b, sum(2))
		return !answer.Go && answer.Condition != nil && answer.Condition.Reason == resourcesv1alpha1.ReasonRolloutHalted
	})

	passed := failed.DeepCopy()
	passed.ResourceVersion = "13"
	clock.SetTime(clock.Now().Add(time.Second))
	say(passed, clock.Now(), resourcesv1alpha1.ConditionTrue)
	s.OnUpdate(failed, passed)
	turns.Ask(failed, sum(2))
	if change := turns.Standing(b); change == nil || change.Reason == resourcesv1alpha1.ReasonRolloutHalted {
		t.Errorf("ROL-5: the older version of a member that recovered halts the group again: %+v", change)
	}

	restored := failed.DeepCopy()
	restored.ResourceVersion = "9"
	s.OnUpdate(passed, restored)
	if change := turns.Standing(b); change == nil || change.Reason != resourcesv1alpha1.ReasonRolloutHalted {
		t.Errorf("ROL-5: after a restore of the source its lower version counts: %+v", change)
	}
}

// total is the sum of all series of a metric.
func total(t *testing.T, metric prometheus.Collector) (sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metric)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// TestUnreadable: without the right to list ConfigMaps the condition says so.
func TestUnreadable(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	client := fake.NewClientset()
	client.PrependReactor("list", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
	})
	turns, s := newTurns(t, client, clock)
	a := managed("a", 1, clock.Now())
	s.OnAdd(a, true)
	poll(t, "ROL-8: the condition says what is missing", func() bool {
		answer := turns.Ask(a, sum(2))
		return !answer.Go && answer.Condition != nil && strings.Contains(answer.Condition.Message, "namespace garden cannot be read: configmaps is forbidden")
	})
	if !turns.Ask(a, sum(1)).Go {
		t.Error("ROL-8: what is applied already waits")
	}
}
