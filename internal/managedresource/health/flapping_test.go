package health

import (
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// MRB-39: an object whose readiness flaps ten times a second costs a status write a second, its first change is told at
// once, and its last state within a second.
func TestFlappingReadiness(t *testing.T) {
	for name, ready := range map[string]func(f *fixture) *string{
		"MRB-39/one condition":    func(f *fixture) *string { return &f.rolling },
		"MRB-39/the other one":    func(f *fixture) *string { return &f.unhealthy },
		"MRB-39/both at one time": func(f *fixture) *string { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.run()
			f.clock.SetTime(f.clock.Now().Add(time.Minute))
			set := func(problem string) {
				if p := ready(f); p != nil {
					*p = problem
					return
				}
				f.rolling, f.unhealthy = problem, problem
			}
			is := func(problem string) bool {
				healthy, progressing := "True: Fine.", "False: Fine."
				if f.unhealthy != "" {
					healthy = "False: " + f.unhealthy
				}
				if f.rolling != "" {
					progressing = "True: " + f.rolling
				}
				return f.condition(resourcesv1alpha1.ResourcesHealthy) == healthy &&
					f.condition(resourcesv1alpha1.ResourcesProgressing) == progressing
			}
			const step, lasts = 10 * time.Millisecond, 10 * time.Second
			begin, before := f.clock.Now(), f.writes
			flapsUntil, again := begin.Add(lasts), time.Time{}
			for now := begin; now.Before(flapsUntil.Add(time.Second + step)); now = now.Add(step) {
				f.clock.SetTime(now)
				since := now.Sub(begin)
				changed := now.Before(flapsUntil) && since%(100*time.Millisecond) == 0
				if changed {
					set([]string{"broken", ""}[since/(100*time.Millisecond)%2])
				}
				if changed || !again.IsZero() && !now.Before(again) {
					again = now.Add(f.run().RequeueAfter)
				}
				if now.Equal(begin) && (f.writes != before+1 || !is("broken")) {
					t.Fatalf("the first change is not told at once: %d writes", f.writes-before)
				}
			}
			writes := f.writes - before
			expect.True(t, writes <= 11, "%d writes for ten seconds", writes)
			if !is("") {
				t.Errorf("a second after the end the conditions are %s, %s",
					f.condition(resourcesv1alpha1.ResourcesHealthy), f.condition(resourcesv1alpha1.ResourcesProgressing))
			}
			// A last state that is not as it should be is told, too.
			set("broken")
			for again = f.clock.Now(); !f.clock.Now().After(again) && !is("broken"); {
				f.clock.SetTime(again)
				result := f.run()
				if again = f.clock.Now().Add(result.RequeueAfter); again.Sub(flapsUntil) > 3*time.Second {
					break
				}
			}
			expect.True(t, is("broken"), "the last state is not told")
		})
	}
}
