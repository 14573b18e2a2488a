package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/espalier-project/espalier/internal/webhook/providersecretlabels"
	"github.com/espalier-project/espalier/test/env/harness"
)

const mebi = 1 << 20

// labels: what one Secret costs grows with the number of its labels, no more, and ends with its client.
func labels(s *stage) error {
	g, err := s.admissionController(nil)
	if err != nil {
		return err
	}
	labelled := fields{}
	for i := range 16_000 {
		labelled[fmt.Sprintf("%sp%d", providersecretlabels.Prefix, i)] = "true"
	}
	// The landscape has a binding for this one.
	poison := secret(project, "credentials-new", fields{"metadata": fields{"labels": labelled}})
	plain := secret(another, "large", fields{"data": fields{"a": base64Of(strings.Repeat("x", 60<<10))}})
	before, err := harness.UsageOf(g.process.PID())
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 5 {
		began := time.Now()
		ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		_, _, err := g.post(ctx, providersecretlabels.Path, poison)
		cancel()
		if took = append(took, time.Since(began)); err != nil {
			break
		}
		time.Sleep(min(2*took[0], s.lasts(time.Second))) // After a large review those rest which come next.
	}
	after, err := harness.UsageOf(g.process.PID())
	if err != nil {
		return err
	}
	s.goal("16,000 labels, processor time of each", (after.CPU-before.CPU)/float64(len(took)), 0.5, " s")
	s.soon("16,000 labels, the best of 5", slices.Min(took), 50*time.Millisecond)
	err = s.phases(g.process, func(ctx context.Context, t *tally) {
		t.paced(ctx, 50*time.Millisecond, func(ctx context.Context, _ int) error { return g.admitted(ctx, providersecretlabels.Path, plain) })
	}, func(ctx context.Context, t *tally) {
		t.together(ctx, 1, func(ctx context.Context, _ int) error {
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			return hangingUp(ctx, func(ctx context.Context) error { return g.admitted(ctx, providersecretlabels.Path, poison) })
		})
	}, time.Second, 5*time.Second)
	s.goal("honest reviews refused", float64(s.during.honest.refused+s.after.honest.refused), 0, "")
	return err
}
