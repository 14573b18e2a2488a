package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestGrace(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	failure := errors.New("away")
	var result error
	check := WithGrace(func(*http.Request) error { return result }, logr.Discard(), clock)
	for _, step := range []struct {
		name   string
		result error
		after  time.Duration
		want   error
	}{
		{"PRC-52 well", nil, 0, nil},
		{"PRC-52 fails", failure, 0, nil},
		{"PRC-52 fails, still within the grace", failure, unsyncedGrace - time.Second, nil},
		{"PRC-52/OPB-10 fails for too long", failure, 2 * time.Second, failure},
		{"PRC-52 recovers", nil, 0, nil},
		{"PRC-52 fails again", failure, time.Hour, nil},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		result = step.result
		expect.ErrorIs(t, check(nil), step.want, "%s", step.name)
	}
}

func TestToldOnce(t *testing.T) {
	var result error
	var lines []string
	check := known("a", func(*http.Request) error { return result }, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	for _, result = range []error{nil, errors.New("away"), errors.New("still away"), nil, nil} {
		expect.ErrorIs(t, check(nil), result)
	}
	want := []string{`"level"=0 "msg"="Probe fails" "check"="a" "reason"="away"`, `"level"=0 "msg"="Probe is well again" "check"="a"`}
	expect.DeepEqual(t, lines, want)
}

func TestContact(t *testing.T) {
	silences := map[string]time.Duration{"Pod": 3 * time.Minute, "Node": 11 * time.Minute, "Machine": 12 * time.Minute}
	for longest, want := range map[time.Duration]string{
		0:                "",
		20 * time.Minute: "",
		10 * time.Minute: "nothing was heard of Machine for 12m0s, Node for 11m0s",
	} {
		got := ""
		if err := ContactCheck(func() map[string]time.Duration { return silences }, longest).Ready(nil); err != nil {
			got = err.Error()
		}
		expect.Equal(t, got, want, "section 3: with %s", longest)
	}
}

// TestOwnMetrics: go_* and process_* are there in every executable, once.
func TestOwnMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		registerOwn(registry)
	}
	families, err := registry.Gather()
	must.Succeed(t, err)
	found := map[string]bool{}
	for _, family := range families {
		found[family.GetName()] = true
	}
	expect.True(t, found["go_goroutines"] && found["process_start_time_seconds"],
		"the metrics of Go and the process: got %d families", len(families))
}

func TestDrain(t *testing.T) {
	var drain Drain
	expect.Succeed(t, drain.Check(nil))
	drain.draining.Store(true)
	expect.Error(t, drain.Check(nil), "OPB-17: ready though draining")
}

// COM-2: source and target may be the same cluster.
func TestSameCluster(t *testing.T) {
	a := &rest.Config{Host: "h", BearerToken: "t", QPS: 1}
	b := rest.CopyConfig(a)
	b.QPS = 2
	expect.True(t, SameCluster(a, b), "COM-2/OPB-12: limits do not matter")
	b.BearerToken = "other"
	expect.False(t, SameCluster(a, b), "OPB-12: another user is another client")
}

// OBS-1: texts of others in a line of the log are bounded, wherever they stand.
func TestLoggedTextsAreBounded(t *testing.T) {
	var out bytes.Buffer
	log, long := NewLogger("info", "json", &out), strings.Repeat("x", 700<<10)
	log.WithValues("a", long, "b", 1).Info(long, "c", long, "d", errors.New(long), "e", "short")
	log.Error(errors.New(long), "failed")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	must.True(t, len(lines) == 2 && len(out.String()) <= 7*maxLogged, "%d lines of %d bytes", len(lines), out.Len())
	entry := map[string]any{}
	must.Succeed(t, json.Unmarshal([]byte(lines[0]), &entry))
	expect.True(t, entry["b"] == 1.0 && entry["e"] == "short", "short values have changed: %v, %v", entry["b"], entry["e"])
	for _, key := range []string{"a", "c", "d", "msg"} {
		text, _ := entry[key].(string)
		expect.True(t, len(text) <= maxLogged && strings.HasPrefix(text, "xxx"), "%s has %d bytes", key, len(text))
	}
}

// PRC-54: a check names what it waits for, each once.
func TestSyncCheckNamesTheKinds(t *testing.T) {
	awaited := []string{"Shoot", "Bastion", "Shoot"}
	check := SyncCheck("informer-sync", func() []string { return awaited }, logr.Discard())
	if err := check.Ready(nil); err == nil || err.Error() != "informers not synced yet: Bastion, Shoot" {
		t.Errorf("got %v", err)
	}
	awaited = nil
	expect.Succeed(t, check.Ready(nil))
	done := false
	until := Awaited(Until("the folder", func() bool { return done }))
	if err := until(nil); err == nil || err.Error() != "informers not synced yet: the folder" {
		t.Errorf("got %v", err)
	}
	if done = true; until(nil) != nil {
		t.Error("it is done")
	}
}

func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log := NewLogger("info", "json", &out)
	log.V(1).Info("hidden")
	log.WithName("a").Info("shown", "took", 90*time.Second)
	entry := map[string]any{}
	must.Succeed(t, json.Unmarshal(out.Bytes(), &entry), "OBS-1: %s", out.String())
	expect.Succeed(t, expect.ErrorOf(time.Parse("2006-01-02T15:04:05.000Z", entry["ts"].(string))), "OBS-1")
	delete(entry, "ts")
	for key, want := range map[string]string{"level": "info", "logger": "a", "msg": "shown", "took": "1m30s"} {
		if entry[key] != want {
			t.Errorf("OBS-1 %s: got %v, want %s", key, entry[key], want)
		}
	}
	out.Reset()
	for range 1000 {
		log.Info("the same")
	}
	if lines := strings.Count(out.String(), "\n"); lines > 120 {
		t.Errorf("OBS-2: %d lines of a thousand", lines)
	}
	out.Reset()
	for range 1000 {
		log.WithName(meta.DeletionLogger).WithValues("namespace", "n").Info("Deleted an object")
	}
	expect.Equal(t, strings.Count(out.String(), "\n"), 1000, "MRB-51, OBS-2: lines of a thousand deletions")
}

// TestLockCheck shows that readiness fails if a lock is not released for a minute, and is back when it is.
func TestLockCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := make(chan struct{}, 1) // The bubble's clock stands still while a goroutine waits for a mutex.
		check := LockCheck("engine", func() { lock <- struct{}{}; <-lock }, clock.RealClock{}).Ready
		probe := func(wants bool, what string) {
			t.Helper()
			err := check(nil)
			synctest.Wait()
			expect.Equal(t, (err == nil), wants, "PRC-59: %s: %v", what, err)
		}
		probe(true, "a free lock")
		lock <- struct{}{}
		probe(true, "a lock that was just taken")
		time.Sleep(lockedFor - time.Second)
		probe(true, "a lock that is held for almost a minute")
		time.Sleep(time.Second)
		probe(false, "a lock that is held for a minute")
		<-lock
		synctest.Wait()
		probe(true, "a lock that was released")
	})
}

func TestUntilFirst(t *testing.T) {
	err := errors.New("away")
	check := UntilFirst(func(*http.Request) error { return err })
	expect.Error(t, check(nil), "what was never reached is ready")
	err = nil
	first := check(nil)
	err = errors.New("away again")
	second := check(nil)
	expect.True(t, first == nil && second == nil, "what was reached once: got %v, %v", first, second)
}

// TestRepeatedErrors: an error that lasts has a line at once, and then fewer and fewer; another one has its own. No line has a stack.
func TestRepeatedErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := NewLogger("info", "json", &out)
		lines := func(during, every time.Duration, write func(i int)) []string {
			out.Reset()
			for i := range int(during / every) {
				write(i)
				time.Sleep(every)
			}
			return strings.Split(strings.TrimSpace(out.String()), "\n")
		}
		reflects := func(i int) {
			log.WithValues("reconcileID", strconv.Itoa(i)).Error(fmt.Errorf("dial 127.0.0.1:%d: refused", 40000+i), "Failed to watch", "kind", "Widget")
		}
		if got := lines(12*time.Second, 200*time.Millisecond, reflects); len(got) != 2 || !strings.Contains(got[1], `"notLogged":49`) || strings.Contains(out.String(), "stacktrace") {
			t.Errorf("OBS-36, OBS-1: 60 errors in 12 s: %s", got)
		}
		got := lines(24*time.Hour, time.Minute, reflects)
		expect.True(t, len(got) >= 140 && len(got) <= 160, "OBS-36: 1440 errors in a day: %d lines", len(got))
		if got := lines(3*time.Second, time.Second, func(i int) { log.Error(errors.New("forbidden"), "Failed to watch", "kind", string(rune('A'+i))) }); len(got) != 3 {
			t.Errorf("OBS-36: three errors that differ: %s", got)
		}
		if got := lines(3*time.Second, time.Second, func(i int) { log.Error(errors.New("forbidden"), "Failed", "namespace", fmt.Sprint("shoot--dev--w", i)) }); len(got) != 3 {
			t.Errorf("OBS-36: one error of three objects: %s", got)
		}
		time.Sleep(3 * time.Hour)
		expect.Equal(t, len(lines(15*time.Second, time.Second, reflects)), 2,
			"OBS-36: an error that was away for hours is new")
	})
}
