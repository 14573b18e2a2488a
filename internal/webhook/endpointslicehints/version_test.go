package endpointslicehints

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestVersions: hints are for targets before 1.32 (R7, BH-ESH-2), and what is not known is as the switch says.
func TestVersions(t *testing.T) {
	for text, want := range map[string]bool{
		"v1.31.9": false, "v1.32.0": true, "v1.32.0-alpha.1": true, "v1.33.1-eks-1": true, "v2.0.0": true, "v1.28.4+k3s1": false, "": false, "x": false,
	} {
		v := &Versions{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), Ask: func(context.Context) (string, error) { return text, nil }}
		expect.Equal(t, v.Superseded(t.Context()), want, "R7/BH-ESH-2: %q", text)
	}
}

// TestVersionsAreKept: the target is asked now and then, one request at a time, and its last answer counts while it does not answer.
func TestVersionsAreKept(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	answer, err, asked := "v1.31.0", error(nil), 0
	v := &Versions{Clock: clock}
	v.Ask = func(ctx context.Context) (string, error) {
		asked++
		expect.True(t, expect.OK(ctx.Deadline()), "nothing bounds the question")
		if got := v.Superseded(ctx); got != (asked == 4) { // Somebody else asks meanwhile, and goes by the last answer.
			t.Errorf("meanwhile %v", got)
		}
		return answer, err
	}
	for i, step := range []struct {
		after  time.Duration
		answer string
		err    error
		want   bool
		asked  int
	}{
		{0, "", errors.New("away"), false, 1},
		{retryAfter - 1, "v1.32.0", nil, false, 1},
		{1, "v1.31.0", nil, false, 2},
		{knownFor - 1, "v1.32.0", nil, false, 2},
		{1, "v1.32.0", nil, true, 3},
		{knownFor, "", errors.New("away"), true, 4},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		answer, err = step.answer, step.err
		got := v.Superseded(t.Context())
		expect.True(t, got == step.want && asked == step.asked, "step %d: %v after %d questions", i, got, asked)
	}
}
