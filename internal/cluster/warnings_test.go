package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestWarnings: each text is logged once an hour, in one short line; what is remembered is bounded; a context can take the warnings of its requests.
func TestWarnings(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	var lines []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	w := NewWarnings(clock)
	warn := func(ctx context.Context, code int, text string) int {
		lines = nil
		w.HandleWarningHeaderWithContext(ctx, code, "-", text)
		return len(lines)
	}
	if warn(ctx, 299, "a") != 1 || warn(ctx, 299, "a") != 0 || warn(ctx, 299, "b") != 1 || warn(ctx, 199, "c") != 0 || warn(ctx, 299, "") != 0 {
		t.Error("CCH-61: each text is logged once")
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	expect.Equal(t, warn(ctx, 299, "a"), 1, "CCH-61: a text is logged again after an hour")
	warn(ctx, 299, "x\x1b[2J\u202e\n"+strings.Repeat("y", 1000))
	expect.True(t, len(lines) == 1 && len(lines[0]) <= 2*shownWarning && !strings.ContainsAny(lines[0], "\x1b\u202e"),
		"CCH-61: got %q", lines)
	for i := range 2 * remembered {
		warn(ctx, 299, fmt.Sprint("text ", i))
	}
	expect.True(t, len(w.hourly.logged) <= remembered, "CCH-61: %d texts are remembered", len(w.hourly.logged))
	collecting, collected := CollectWarnings(ctx)
	for i := range 2 * mostWarnings {
		expect.Equal(t, warn(collecting, 299, fmt.Sprint("of a request ", i)), 0, "CCH-61: a warning that is collected is logged")
	}
	got := collected.Texts()
	expect.True(t, len(got) == mostWarnings && got[0] == "of a request 0", "CCH-61: collected %q", got)
}
