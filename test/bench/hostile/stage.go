package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
)

// stage is where one scenario is played, and what was measured there.
type stage struct {
	scenario
	ctx      context.Context
	bin, dir string
	// short says that phases last a tenth.
	short bool
	// close is what is to be ended, in reverse.
	close []func()

	before, during, after phase
	goals                 []goal
}

// phase is what was measured of one part of a scenario.
type phase struct {
	honest, hostile *tally
	// memory is the usage at the end.
	memory harness.Usage
	// peak is the most memory of the phase, cpu the processor time in seconds, and took how long it lasted.
	peak, cpu float64
	took      time.Duration
}

// goal is one of the figures that must hold.
type goal struct {
	what, want, got string
	met             bool
	// timed says that the figure is a time, which a busy machine makes worse.
	timed bool
}

func (g goal) String() string {
	verdict := "met"
	if !g.met {
		verdict = "MISSED"
	}
	return fmt.Sprintf("%s: %s, goal %s: %s", g.what, g.got, g.want, verdict)
}

func newStage(ctx context.Context, s scenario, bin, dir string, short bool) *stage {
	return &stage{scenario: s, ctx: ctx, bin: bin, dir: dir, short: short}
}

// play plays the scenario, and ends what it started.
func (s *stage) play() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer func() {
		cancel()
		for i := len(s.close) - 1; i >= 0; i-- {
			s.close[i]()
		}
	}()
	s.ctx = ctx
	if err := s.run(s); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// lasts is the time that a phase takes that is so long in a full run.
func (s *stage) lasts(full time.Duration) time.Duration {
	if s.short {
		return full / 10
	}
	return full
}

// goal adds a goal about a count or about memory.
func (s *stage) goal(what string, got float64, want float64, unit string) {
	s.goals = append(s.goals, goal{what: what, want: fmt.Sprintf("≤ %.4g%s", want, unit), got: fmt.Sprintf("%.4g%s", got, unit), met: got <= want})
}

// soon adds a goal about a time.
func (s *stage) soon(what string, got, want time.Duration) {
	s.goals = append(s.goals, goal{
		what: what, want: fmt.Sprintf("≤ %g ms", milliseconds(want)), got: fmt.Sprintf("%.3g ms", milliseconds(got)), met: got <= want, timed: true,
	})
}

// client is what some clients do until the context ends.
type client func(ctx context.Context, t *tally)

// phases measures honest clients alone, beside hostile ones, and alone again.
func (s *stage) phases(p *harness.Process, honest, hostile client, alone, beside time.Duration) error {
	for _, part := range []struct {
		into *phase
		also client
		long time.Duration
	}{{&s.before, nil, alone}, {&s.during, hostile, beside}, {&s.after, nil, alone}} {
		measured, err := s.measure(p, honest, part.also, s.lasts(part.long))
		if err != nil {
			return err
		}
		*part.into = measured
	}
	return nil
}

// measure has clients work for a while, and says what became of it. Clients that wait for an answer then are waited for.
func (s *stage) measure(p *harness.Process, honest, hostile client, long time.Duration) (phase, error) {
	measured := phase{honest: newTally(), hostile: newTally()}
	before, err := harness.UsageOf(p.PID())
	if err != nil {
		return measured, fmt.Errorf("%s is gone: %w: %s", p.Name, err, p.Output())
	}
	if err := harness.ResetPeak(p.PID()); err != nil {
		return measured, err
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.ctx, long)
	defer cancel()
	var working sync.WaitGroup
	for i, does := range []client{honest, hostile} {
		if does != nil {
			working.Go(func() { does(ctx, []*tally{measured.honest, measured.hostile}[i]) })
		}
	}
	working.Wait()
	<-ctx.Done()
	after, err := harness.UsageOf(p.PID())
	if err != nil {
		return measured, fmt.Errorf("%s is gone: %w: %s", p.Name, err, p.Output())
	}
	measured.memory, measured.peak, measured.cpu, measured.took = after, after.Peak, after.CPU-before.CPU, time.Since(began)
	return measured, nil
}

// allocated is how much the memory of a process grew at its peak while something was done, in MiB.
func allocated(p *harness.Process, do func()) (float64, error) {
	if err := harness.ResetPeak(p.PID()); err != nil {
		return 0, err
	}
	before, err := harness.UsageOf(p.PID())
	if err != nil {
		return 0, err
	}
	do()
	after, err := harness.UsageOf(p.PID())
	if err != nil {
		return 0, fmt.Errorf("%s is gone: %w", p.Name, err)
	}
	return after.Peak - before.RSS, nil
}
