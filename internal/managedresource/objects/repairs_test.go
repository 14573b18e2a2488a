package objects

import (
	"fmt"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// pacer is a tracker as far as it paces repairs, of objects that are tracked when they are first mentioned.
type pacer struct {
	l     *Tracker
	clock *clocktesting.FakePassiveClock
}

func newPacer(clock *clocktesting.FakePassiveClock, delay time.Duration) pacer {
	l := New()
	l.RepairDelay = delay
	return pacer{l, clock}
}

func (p pacer) of(key ID) Drift { return p.l.Drift(key, p.clock.Now()) }

func (p pacer) noticed(key ID) time.Duration {
	if !p.l.Get(key).Tracked {
		p.l.Track(Owner{Name: key.Name}, []Ref{{ID: key}})
	}
	p.l.Drift(key, p.clock.Now(), DriftNoticed)
	return max(0, p.until(key))
}

// until is after what time the object may be repaired.
func (p pacer) until(key ID) time.Duration {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	return p.l.findLocked(key).rare.repairs.until.Sub(p.clock.Now())
}

func (p pacer) due(key ID) time.Duration  { return p.of(key).Due }
func (p pacer) held(key ID) time.Duration { return p.of(key).Wait }
func (p pacer) unreported(key ID) bool    { return p.of(key).Unreported }
func (p pacer) isFight(key ID) bool       { return p.of(key).Fight }
func (p pacer) notify(key ID)             { p.l.Drift(key, p.clock.Now(), DriftReported) }
func (p pacer) unfounded(key ID)          { p.l.Drift(key, p.clock.Now(), DriftUnfounded) }
func (p pacer) repaired(key ID) bool {
	return p.l.Drift(key, p.clock.Now(), DriftRepaired).Unreported
}

func TestFightsSlowDown(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	d := newPacer(clock, 0)
	key := ID{Name: "x"}
	for range fightThreshold {
		must.Equal(t, d.noticed(key), 0, "MRB-34: the first repairs are immediate")
		expect.False(t, d.isFight(key), "MRB-34: a few repairs are no fight")
		d.repaired(key)
	}
	repairs := 0
	for end := clock.Now().Add(time.Hour); clock.Now().Before(end); repairs++ {
		wait := d.noticed(key)
		must.Equal(t, d.noticed(key), wait, "MRB-34: a change while an object is held moves its time")
		clock.SetTime(clock.Now().Add(wait + 200*time.Millisecond))
		d.repaired(key)
	}
	expect.True(t, repairs <= 130, "MRB-34: %d repairs in an hour, want two a minute", repairs)
	expect.True(t, d.isFight(key) && d.noticed(ID{Name: "y"}) == 0, "MRB-34: other objects are not slowed down")
	clock.SetTime(clock.Now().Add(5 * time.Minute))
	expect.True(t, d.noticed(key) != 0, "MRB-34: five minutes are no peace")
	clock.SetTime(clock.Now().Add(quiet + time.Minute))
	expect.Equal(t, d.noticed(key), 0, "MRB-34: an old fight is forgotten")
}

func TestDriftRepairDelay(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	d := newPacer(clock, 10*time.Minute)
	key := ID{Name: "x"}
	expect.Equal(t, d.noticed(key), 10*time.Minute, "the first repair waits, too")
	notify := d.unreported(key)
	d.notify(key)
	expect.True(t, notify && !d.unreported(key), "a drift is reported once")
	clock.SetTime(clock.Now().Add(9 * time.Minute))
	got := d.noticed(key)
	expect.True(t, got == time.Minute && d.held(key) == time.Minute, "a second edit does not extend the delay: %s", got)
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	expect.True(t, d.held(key) <= 0, "held for longer than the delay")
	expect.Equal(t, d.noticed(key), 0, "a change of what is due waits anew")
	expect.False(t, d.repaired(key), "a reported drift is reported once more when it is repaired")
	if got := d.noticed(key); got != 10*time.Minute || !d.unreported(key) {
		t.Errorf("the next drift waits %s, and is to be reported: %t", got, d.unreported(key))
	}
	d.unfounded(key)
	expect.True(t, d.held(key) <= 0 && !d.unreported(key), "what is as it should be is held")
	clock.SetTime(clock.Now().Add(time.Minute))
	expect.Equal(t, d.noticed(key), 10*time.Minute, "a drift after a change that needed no repair waits")
	expect.True(t, d.repaired(key), "an unreported drift is reported when it is repaired")
}

// MRB-34: two writers of very many objects make no more repairs of each than two of one object do.
func TestFightAboutManyObjects(t *testing.T) {
	const many, minutes = 25_000, 2
	clock := clocktesting.NewFakePassiveClock(time.Now())
	d := newPacer(clock, 0)
	repairs := make([]int, many)
	for range minutes * 60 {
		for i := range repairs {
			key := ID{Name: fmt.Sprint(i)}
			d.noticed(key)
			if d.held(key) <= 0 {
				d.repaired(key)
				repairs[i]++
			}
		}
		clock.SetTime(clock.Now().Add(time.Second))
	}
	// The pause gets longer and longer: 1, 2, 4, 8, 16 and then 30 seconds.
	most := slices.Max(repairs)
	expect.True(t, most <= fightThreshold+5+2*minutes, "%d repairs of one object in %d minutes", most, minutes)
}

// MRB-34: an object that is changed all the time, though nothing is to be repaired, is looked at at once for some times, then now and then, and
// at once again when it has been calm for a while.
func TestLooksInVain(t *testing.T) {
	for _, delay := range []time.Duration{0, 10 * time.Minute} {
		t.Run(fmt.Sprint("delay ", delay), func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			d := newPacer(clock, delay)
			key := ID{Name: "x"}
			change := func(want time.Duration) {
				t.Helper()
				for range 2 { // A further change counts for nothing.
					repair := d.noticed(key)
					if got := d.due(key); got != want || repair != max(want, delay) {
						t.Errorf("it is looked at in %s and repaired in %s, want %s", got, repair, want)
					}
				}
				if want > 0 && (d.unreported(key) || d.held(key) != want) {
					t.Errorf("a run that begins for another reason looks at it: %t, %s", d.unreported(key), d.held(key))
				}
				clock.SetTime(clock.Now().Add(want))
				expect.True(t, d.due(key) == 0 && d.unreported(key) == (delay > 0) && d.held(key) <= max(0, delay-want),
					"after %s it is not looked at", want)
				d.unfounded(key)
			}
			for range 10 * burst {
				change(0) // It is nothing to be changed now and then.
				clock.SetTime(clock.Now().Add(lookPause))
			}
			for range burst {
				change(0)
			}
			for range burst {
				change(lookPause)
			}
			expect.True(t, !d.isFight(key) && d.noticed(ID{Name: "y"}) == delay && d.due(ID{Name: "y"}) == 0,
				"others are looked at later, or it is taken for a fight")
			clock.SetTime(clock.Now().Add(burst * lookPause))
			change(0)
		})
	}
}

// With a delay each repair is delayed by it, however many there are, and each drift is reported once. Quiet objects are forgotten.
func TestManyDriftsAreDelayed(t *testing.T) {
	const many = 25_000
	clock := clocktesting.NewFakePassiveClock(time.Now())
	d := newPacer(clock, 10*time.Minute)
	key := func(i int) ID { return ID{Name: fmt.Sprint(i)} }
	for i := range many {
		clock.SetTime(clock.Now().Add(time.Millisecond))
		if got := d.noticed(key(i)); got != 10*time.Minute || d.held(key(i)) != got {
			t.Fatalf("the %d. object waits %s, and is held for %s", i, got, d.held(key(i)))
		}
	}
	last := key(many - 1)
	clock.SetTime(clock.Now().Add(9 * time.Minute))
	expect.Equal(t, d.noticed(last), time.Minute, "a second change waits")
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	for i := range many {
		must.True(t, d.held(key(i)) <= 0 && d.repaired(key(i)),
			"held for longer than the delay, or repaired without a word")
	}
	clock.SetTime(clock.Now().Add(2*quiet + time.Minute))
	d.noticed(last)
	d.l.Sweep(clock.Now())
	expect.Equal(t, len(d.l.rares), 1, "records have repairs, though nothing has happened to all but one")
}
