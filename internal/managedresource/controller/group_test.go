package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/turns"
)

// grouped is a fixture whose ManagedResources are in a roll-out group.
type grouped struct {
	*fixture
	handler toolscache.ResourceEventHandler
	end     func()
}

// AddEventHandler stands for the informer of ManagedResources.
func (g *grouped) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	g.handler = handler
	return toldAll{}, nil
}

type toldAll struct{}

func (toldAll) HasSynced() bool                          { return true }
func (toldAll) HasSyncedChecker() toolscache.DoneChecker { return nil }

// newGrouped has the ManagedResources canary and late, with a ConfigMap each, applied in the group g of two waves.
func newGrouped(t *testing.T) *grouped {
	t.Helper()
	g := &grouped{fixture: newFixture(t)}
	g.configure(map[string]string{"waves": "[{selector: canary=true}]", "pause": "1m"})
	for _, name := range []string{"canary", "late"} {
		g.managed(name, name+"=1")
		mr := g.get(name)
		mr.Labels = map[string]string{name: "true"}
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationRolloutGroup: "g"}
		g.must(g.source.Update(g.ctx, mr))
	}
	g.start()
	for _, name := range []string{"canary", "late"} {
		g.complete(name)
		g.judge(name, resourcesv1alpha1.ConditionTrue)
		if value, _ := g.target.value(name); value != "1" {
			t.Fatalf("ROL-4: the first content of %s waits: %q", name, value)
		}
	}
	g.clock.SetTime(g.clock.Now().Add(time.Hour))
	return g
}

func (g *grouped) configure(data map[string]string) {
	g.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "g", Labels: map[string]string{resourcesv1alpha1.LabelRolloutGroup: ""}}, Data: data}
	if _, err := g.secrets.CoreV1().ConfigMaps("garden").Create(g.ctx, cm, metav1.CreateOptions{}); err != nil {
		_, err = g.secrets.CoreV1().ConfigMaps("garden").Update(g.ctx, cm, metav1.UpdateOptions{})
		g.must(err)
	}
}

// start begins a process that knows nothing yet.
func (g *grouped) start() {
	g.Helper()
	if g.end != nil {
		g.end()
		target := g.target
		fresh := newFixture(g.T)
		options := fresh.Options
		options.Statuses, options.Secrets, options.Events, options.Clock, options.Target = g.Statuses, g.Secrets, g.Events, g.clock, g.Target
		options.Watches, options.Assessor = g.Watches, g.Assessor
		g.Reconciler = New(options)
		g.triggers, g.target = g.Triggers, target
		g.Tracker.Subscribe(objects.Subscriber{Drift: g.triggers.Drift})
	}
	g.Turns = turns.New(turns.Options{
		Namespace: "garden", Source: g.secrets, Counts: g.Class.Responsible, Clock: g.clock, Metrics: turns.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
	})
	g.must(g.Turns.Follow(g))
	g.Turns.Subscribe("", g.triggers.Turn)
	g.see()
	ctx, cancel := context.WithCancel(g.ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = g.Turns.Start(ctx) }()
	g.end = func() { cancel(); <-ended }
	g.Cleanup(g.end)
}

// see reports all ManagedResources.
func (g *grouped) see() {
	all := &resourcesv1alpha1.ManagedResourceList{}
	g.must(g.source.List(g.ctx, all))
	for i := range all.Items {
		g.handler.OnUpdate(nil, &all.Items[i])
	}
}

// changed has new content for a ManagedResource in a Secret of another name, as gardenlet writes it.
func (g *grouped) changed(name, value string) {
	g.Helper()
	g.secret(name+"-"+value, "1", name+"="+value)
	g.edit(name, func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs[0].Name = name + "-" + value })
}

// judge writes the health of a ManagedResource.
func (g *grouped) judge(name string, status resourcesv1alpha1.ConditionStatus) {
	g.Helper()
	mr := g.get(name)
	mr.Status.Conditions, _ = meta.Conditions(mr.Status.Conditions).With(g.clock.Now().Truncate(time.Second),
		meta.ConditionChange{Type: resourcesv1alpha1.ResourcesHealthy, Status: status, Reason: "Told", Message: "told"})
	g.must(g.source.Status().Update(g.ctx, mr))
	g.see()
}

// gets runs until a ManagedResource has its content in the target.
func (g *grouped) gets(name, value string) {
	g.Helper()
	poll(g.T, "ROL-4: "+value+" of "+name, func() bool {
		g.complete(name)
		got, _ := g.target.value(name)
		return got == value
	})
	g.see()
}

// fails has a process know of a ManagedResource, whose objects then turn out to be unhealthy.
func (g *grouped) fails(name string) {
	g.Helper()
	_, _ = g.run(name)
	g.judge(name, resourcesv1alpha1.ConditionFalse)
}

func (g *grouped) held(name string) string {
	c := meta.Conditions(g.get(name).Status.Conditions).Get(resourcesv1alpha1.RolloutHeld)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason + ": " + c.Message
}

// awaitHeld runs until the condition begins with something.
func (g *grouped) awaitHeld(name, want string) {
	g.Helper()
	poll(g.T, want+" of "+name, func() bool {
		_, _ = g.run(name)
		g.see()
		return strings.HasPrefix(g.held(name), want)
	})
	if g.Failed() {
		g.Fatalf("%s: %s", name, g.held(name))
	}
}

func (g *grouped) wants(rule, name, value string) {
	g.Helper()
	if got, _ := g.target.value(name); got != value {
		g.Fatalf("%s: %s is %q, want %q (%s, %s)", rule, name, got, value, g.held(name), g.condition(name))
	}
}

// TestGroup: a later wave keeps what it has, and its drift is repaired, until the first wave has passed the gate.
func TestGroup(t *testing.T) {
	g := newGrouped(t)
	g.changed("late", "2")
	g.changed("canary", "2")
	g.awaitHeld("late", "True/RolloutWaiting")
	g.wants("ROL-1", "late", "1")
	if got := g.get("late"); got.Status.ObservedGeneration == got.Generation || !strings.HasPrefix(g.condition("late"), "True/ApplySucceeded") {
		t.Errorf("ROL-1: observedGeneration %d of %d, %s", got.Status.ObservedGeneration, got.Generation, g.condition("late"))
	}
	if got := g.get("late").Annotations; got["resources.gardener.cloud/rollout-applied"] == "" || !hasValue(got, previousPrefix, "late") {
		t.Errorf("ROL-7: the former Secret is not kept: %v", got)
	}
	g.edited("late", setValue("by hand"))
	g.complete("late")
	g.wants("ROL-7", "late", "1")

	g.gets("canary", "2")
	g.judge("canary", resourcesv1alpha1.ConditionUnknown)
	g.clock.SetTime(g.clock.Now().Add(2 * time.Minute))
	g.complete("late")
	g.wants("ROL-4", "late", "1") // The canary is not judged yet.

	g.judge("canary", resourcesv1alpha1.ConditionTrue)
	g.clock.SetTime(g.clock.Now().Add(30 * time.Second))
	g.complete("late")
	g.wants("ROL-4", "late", "1") // The pause is not over.
	g.clock.SetTime(g.clock.Now().Add(31 * time.Second))
	g.triggers.Turn(types.NamespacedName{Namespace: "n", Name: "late"}, true)
	g.awaitHeld("late", "False/RolloutLetGo")
	g.complete("late")
	g.wants("ROL-4", "late", "2")
	if got := g.get("late"); got.Status.ObservedGeneration != got.Generation || hasValue(got.Annotations, previousPrefix, "late") {
		t.Errorf("ROL-1: after its turn: generation %d of %d, %v", got.Status.ObservedGeneration, got.Generation, got.Annotations)
	}
}

func hasValue(annotations map[string]string, prefix, value string) bool {
	for key, got := range annotations {
		if strings.HasPrefix(key, prefix) && got == value {
			return true
		}
	}
	return false
}

// TestGroupHalts: a bad wave halts the group, whatever process looks, until there is a newer content; deletions do not wait.
func TestGroupHalts(t *testing.T) {
	for name, restart := range map[string]bool{"ROL-5/one process": false, "ROL-7/another process each time": true} {
		t.Run(name, func(t *testing.T) {
			g := newGrouped(t)
			again := func() {
				if restart {
					g.start()
				}
			}
			g.changed("canary", "2")
			g.changed("late", "2")
			g.gets("canary", "2")
			again()
			g.clock.SetTime(g.clock.Now().Add(2 * time.Minute))
			g.fails("canary")
			g.awaitHeld("late", "True/RolloutHalted")
			if held := g.held("late"); !strings.Contains(held, "n/canary failed (ResourcesHealthy is False, Told: told)") {
				t.Errorf("ROL-5: %s", held)
			}
			again()
			g.fails("canary")
			g.edited("late", setValue("by hand"))
			g.complete("late")
			g.wants("ROL-7", "late", "1")

			again()
			g.must(g.secrets.CoreV1().ConfigMaps("garden").Delete(g.ctx, "g", metav1.DeleteOptions{}))
			g.awaitHeld("late", "True/RolloutGroupInvalid")
			g.wants("ROL-8", "late", "1")
			g.configure(map[string]string{"waves": "nonsense"})
			poll(t, "ROL-8: the key is named", func() bool {
				_, _ = g.run("late")
				return strings.Contains(g.held("late"), "ConfigMap garden/g: key waves: is no list of waves")
			})
			again()
			g.configure(map[string]string{"waves": "[{selector: canary=true}]", "pause": "1m"})
			g.fails("canary")
			g.awaitHeld("late", "True/RolloutHalted")
			g.wants("ROL-8", "late", "1")

			g.changed("canary", "3")
			g.changed("late", "3")
			g.gets("canary", "3")
			again()
			_, _ = g.run("canary")
			_, _ = g.run("late")
			g.clock.SetTime(g.clock.Now().Add(2 * time.Minute))
			g.triggers.Turn(types.NamespacedName{Namespace: "n", Name: "late"}, true)
			g.awaitHeld("late", "False/RolloutLetGo")
			g.complete("late")
			g.wants("ROL-5", "late", "3")
		})
	}
}

// TestGroupAndDeletion: a ManagedResource that is deleted does not wait.
func TestGroupAndDeletion(t *testing.T) {
	g := newGrouped(t)
	g.changed("late", "2")
	g.awaitHeld("late", "True/RolloutWaiting")
	g.must(g.secrets.CoreV1().Secrets("n").Delete(g.ctx, "late", metav1.DeleteOptions{}))
	g.edited("late", setValue("by hand"))
	_, err := g.run("late")
	g.must(err)
	g.wants("ROL-7", "late", "by hand") // Nobody knows what it was.
	g.must(g.source.Delete(g.ctx, g.get("late")))
	_, err = g.run("late")
	g.must(err)
	poll(t, "ROL-1: the object is deleted", func() bool {
		_, _ = g.run("late")
		_, found := g.target.value("late")
		return !found
	})
}

// TestLeavingGroup: a ManagedResource that leaves its group waits no more.
func TestLeavingGroup(t *testing.T) {
	g := newGrouped(t)
	g.changed("late", "2")
	g.awaitHeld("late", "True/RolloutWaiting")
	before := g.get("late")
	g.edit("late", func(mr *resourcesv1alpha1.ManagedResource) {
		delete(mr.Annotations, resourcesv1alpha1.AnnotationRolloutGroup)
	})
	if !g.onManagedResourceChanged(before, g.get("late")) {
		t.Error("ROL-1: nobody looks at a ManagedResource that left its group")
	}
	g.complete("late")
	g.wants("ROL-1", "late", "2")
	if held := g.held("late"); !strings.HasPrefix(held, "False/") {
		t.Errorf("ROL-1: %s", held)
	}
}

// TestWaitsWithoutFormerContent: a member whose former content was overwritten reads nothing until there is news.
func TestWaitsWithoutFormerContent(t *testing.T) {
	g := newGrouped(t)
	g.secret("late", "2", "late=2")
	g.triggers.SecretChanged(types.NamespacedName{Namespace: "n", Name: "late"}, "late/2")
	g.awaitHeld("late", "True/RolloutWaiting")
	g.complete("late")
	g.secrets.ClearActions()
	g.edited("late", setValue("by hand"))
	g.triggers.sweep()
	g.complete("late")
	for _, action := range g.secrets.Actions() {
		if action.GetResource().Resource == "secrets" {
			t.Errorf("ROL-7: a member that waits asks without news: %v", action)
		}
	}
	if g.states.of(ownerOf(g.get("late"))).IsOutOfSync() || !g.allInSync(ownerOf(g.get("late"))) {
		t.Error("ROL-7: a member that waits is looked at in each sync period")
	}
	g.triggers.Turn(types.NamespacedName{Namespace: "n", Name: "late"}, true)
	g.clock.SetTime(g.clock.Now().Add(2 * time.Minute))
	g.gets("canary", "1")
	g.gets("late", "2")
}
