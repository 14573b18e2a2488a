package managedresource

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/engine/ledger"
)

func TestQuarrelsSlowDown(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	d := newDrifts(clock, 0)
	key := ledger.Key{Name: "x"}
	for range quarrel {
		if got := d.noticed(key); got != 0 {
			t.Fatalf("MRB-34: the first repairs are immediate, got %s", got)
		}
	}
	if d.quarrels(key) {
		t.Error("MRB-34: a few repairs are no quarrel")
	}
	repairs := 0
	for end := clock.Now().Add(time.Hour); clock.Now().Before(end); repairs++ {
		wait := d.noticed(key)
		if again := d.noticed(key); again != wait {
			t.Fatalf("MRB-34: a change while an object is held moves its time from %s to %s", wait, again)
		}
		clock.SetTime(clock.Now().Add(wait + 200*time.Millisecond))
	}
	if repairs > 130 {
		t.Errorf("MRB-34: %d repairs in an hour, want two a minute", repairs)
	}
	if !d.quarrels(key) || d.noticed(ledger.Key{Name: "y"}) != 0 {
		t.Error("MRB-34: other objects are not slowed down")
	}
	clock.SetTime(clock.Now().Add(5 * time.Minute))
	if got := d.noticed(key); got == 0 {
		t.Error("MRB-34: five minutes are no peace")
	}
	clock.SetTime(clock.Now().Add(quiet + time.Minute))
	if got := d.noticed(key); got != 0 {
		t.Errorf("MRB-34: an old quarrel is forgotten, got %s", got)
	}
}

func TestDriftRepairDelay(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	d := newDrifts(clock, 10*time.Minute)
	key := ledger.Key{Name: "x"}
	if got := d.noticed(key); got != 10*time.Minute {
		t.Errorf("the first repair waits, too: %s", got)
	}
	if !d.tell(key) || d.tell(key) {
		t.Error("a drift is told of once")
	}
	clock.SetTime(clock.Now().Add(9 * time.Minute))
	if got := d.noticed(key); got != time.Minute || d.held(key) != time.Minute {
		t.Errorf("a second edit does not extend the delay: %s", got)
	}
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	if d.held(key) > 0 {
		t.Error("held for longer than the delay")
	}
	if d.noticed(key); !d.tell(key) {
		t.Error("the next drift is told of again")
	}
}

func TestWhatIsHeldIsBounded(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	d := newDrifts(clock, 0)
	fought := ledger.Key{Name: "fought"}
	for range quarrel + 1 {
		d.noticed(fought)
	}
	for i := range 2 * mostHeld {
		d.noticed(ledger.Key{Name: string(rune(i))})
	}
	if len(d.byKey) > mostHeld+1 || !d.quarrels(fought) {
		t.Errorf("%d records, quarrel remembered: %t", len(d.byKey), d.quarrels(fought))
	}
}

// delayed makes drift wait for ten minutes.
func delayed(c *config.ManagedResourceControllerConfig) {
	c.DriftRepairDelay.Duration = 10 * time.Minute
}

// MR-33: what this instance deleted to create it anew is no drift, and is not held for the delay.
func TestReplacedIsNotHeld(t *testing.T) {
	const replaceable = "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"
	f := newFixture(t, delayed)
	f.managed("m")
	f.manifests("m", "2", configMap("a", "1", replaceable))
	f.settle("m")
	f.edited("a", setValue("by hand"))
	f.settle("m")
	f.tellOfWrites()
	f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
	f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
	noticed := total(t, f.Metrics.driftNoticed)
	_, err := f.run("m")
	if _, there := f.target.value("a"); there || err == nil {
		t.Fatalf("it was not deleted: %v", err)
	}
	f.settle("m")
	if _, there := f.target.value("a"); !there {
		t.Fatalf("it was not created: %s", f.condition("m"))
	}
	if got := total(t, f.Metrics.driftNoticed) - noticed; got != 0 {
		t.Errorf("%v drifts noticed", got)
	}
	f.edited("a", setValue("by hand again"))
	f.settle("m")
	if value, _ := f.target.value("a"); value != "by hand again" {
		t.Errorf("the next edit is taken back at once: %s", value)
	}
}

// MRB-34: the delay holds as well for a ManagedResource of which something else has failed since the start, and a run that was
// asked for does not wait for it.
func TestDelayWhileSomethingElseFails(t *testing.T) {
	f := newFixture(t, delayed)
	f.managed("m", "a=1", "b=1")
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	for range 3 {
		_, _ = f.run("m")
	}
	f.clock.SetTime(f.clock.Now().Add(time.Second)) // Events are named by their time.
	f.edited("a", setValue("hot fix"))
	_, _ = f.run("m")
	if value, _ := f.target.value("a"); value != "hot fix" || !strings.Contains(f.events(), "is put right in 10m0s") {
		t.Errorf("taken back at once: %s; events: %s", value, f.events())
	}
	mr := f.get("m")
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	f.must(f.source.Update(f.ctx, mr))
	_, _ = f.run("m")
	if value, _ := f.target.value("a"); value != "1" {
		t.Errorf("not put right though a run was asked for: %s", value)
	}
}
