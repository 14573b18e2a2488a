package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// ask is one question of a client: nil means that it was answered as it should be. An error that is errHungUp is the client's own doing.
type ask func(ctx context.Context, i int) error

var errHungUp = errors.New("the client hung up")

// patience is the time that kube-apiserver waits for a webhook by default.
const patience = 10 * time.Second

// tally counts what became of the questions of some clients.
type tally struct {
	mu      sync.Mutex
	took    []time.Duration
	refused int
	hungUp  int
	why     map[string]int
}

func newTally() *tally { return &tally{why: map[string]int{}} }

// ask asks once. A client that was told to stop in the meantime still gets its answer.
func (t *tally) ask(ctx context.Context, i int, question ask) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	began := time.Now()
	err := question(ctx, i)
	took := time.Since(began)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = append(t.took, took)
	switch {
	case errors.Is(err, errHungUp):
		t.hungUp++
	case err != nil:
		t.refused++
		text := err.Error()
		t.why[text[:min(len(text), 160)]]++
	}
}

// paced asks at a steady pace, whether the answers come or not: a client that waits would not notice most of what it has to wait for.
func (t *tally) paced(ctx context.Context, every time.Duration, question ask) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var asking sync.WaitGroup
	defer asking.Wait()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			asking.Go(func() { t.ask(ctx, i, question) })
		}
	}
}

// together has so many clients ask at once, each one question after the other.
func (t *tally) together(ctx context.Context, clients int, question ask) {
	var asking sync.WaitGroup
	for c := range clients {
		asking.Go(func() {
			for i := c; ctx.Err() == nil; i += clients {
				t.ask(ctx, i, question)
			}
		})
	}
	asking.Wait()
}

// atLimits asks as a client-go client does that uses up its limits: a burst at once, and then so many a second.
func (t *tally) atLimits(ctx context.Context, burst, perSecond int, question ask) {
	var asking sync.WaitGroup
	defer asking.Wait()
	for i := range burst {
		asking.Go(func() { t.ask(ctx, i, question) })
	}
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for i := burst; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			asking.Go(func() { t.ask(ctx, i, question) })
		}
	}
}

// quantile is 0 if nobody asked.
func (t *tally) quantile(q float64) time.Duration {
	if len(t.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t.took))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// reasons are why questions were refused, the most frequent first.
func (t *tally) reasons() string {
	all := slices.SortedFunc(maps.Keys(t.why), func(a, b string) int { return t.why[b] - t.why[a] })
	var texts []string
	for _, why := range all[:min(len(all), 3)] {
		texts = append(texts, fmt.Sprintf("%d × %s", t.why[why], why))
	}
	return strings.Join(texts, "; ")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
