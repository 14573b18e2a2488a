package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// test is a test function of a package, how long it takes without a defect, and the defects that it reaches.
type test struct {
	name  string
	takes time.Duration
	hits  map[int]bool
}

// quick is the longest time that a test may take to be run together with others in one process.
const quick = 300 * time.Millisecond

// noFailFile keeps pgregory.net/rapid from writing each failing draw into the folder of the package.
const noFailFile = "-rapid.nofailfile"

// measure runs each test alone, without a defect, and reports whether the time sufficed for all. Tests that fail or
// are skipped alone are not used.
func measure(ctx context.Context, m *mutated, work string, o options) ([]test, bool, error) {
	list := "-test.list=" + cmp.Or(o.run, ".")
	names, err := execute(ctx, m, time.Minute, nil, list, noFailFile)
	if err == nil {
		m.arguments = []string{noFailFile}
	} else { // The tests have no such flag.
		names, err = execute(ctx, m, time.Minute, nil, list)
	}
	m.arguments = append(m.arguments, o.arguments...)
	if err != nil {
		return nil, false, fmt.Errorf("listing the tests of %s: %w: %s", m.path, err, names)
	}
	// A limited time leaves half of it to the defects.
	measuring := ctx
	if end, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		measuring, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	var (
		lock     sync.Mutex
		tests    []test
		complete = true
		workers  errgroup.Group
	)
	workers.SetLimit(o.workers)
	for name := range strings.Lines(names) {
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Example") && !strings.HasPrefix(name, "Fuzz") {
			continue
		}
		workers.Go(func() error {
			t, err := measureOne(measuring, m, work, o, name)
			lock.Lock()
			defer lock.Unlock()
			switch {
			case measuring.Err() != nil:
				complete = false
			case err != nil:
				fmt.Fprintf(os.Stderr, "%s fails or takes too long without a defect: %.200s\n", name, err)
			default:
				tests = append(tests, t)
			}
			return nil
		})
	}
	_ = workers.Wait() // No function returns an error.
	slices.SortStableFunc(tests, func(a, b test) int { return cmp.Or(cmp.Compare(a.takes, b.takes), cmp.Compare(a.name, b.name)) })
	return tests, complete, ctx.Err()
}

func measureOne(ctx context.Context, m *mutated, work string, o options, name string) (test, error) {
	hits := filepath.Join(work, "hits-"+name)
	began := time.Now()
	output, err := execute(ctx, m, o.perTest, []string{"ESPALIER_MUTANT_HITS=" + hits}, "-test.run=^"+name+"$")
	if err != nil {
		return test{}, fmt.Errorf("%w: %s", err, output)
	}
	t := test{name: name, takes: time.Since(began), hits: map[int]bool{}}
	text, err := os.ReadFile(hits)
	if err != nil && !os.IsNotExist(err) {
		return test{}, err
	}
	for line := range strings.Lines(string(text)) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			t.hits[n] = true
		}
	}
	return t, nil
}

type verdict int

const (
	killed verdict = iota
	survived
	unreached
	undecided
)

// judge runs, for each defect, the tests that reach it, until one fails. A test that runs much longer than before has
// failed. The order is random, so that the defects that are decided before the time is over are a sample. If not all
// tests were measured, a defect that those do not kill is undecided.
func judge(ctx context.Context, m *mutated, tests []test, complete bool, mutants []mutant, o options, progress func()) []verdict {
	verdicts := make([]verdict, len(mutants))
	next := make(chan int)
	var wait sync.WaitGroup
	for range o.workers {
		wait.Go(func() {
			for i := range next {
				verdicts[i] = judgeOne(ctx, m, tests, mutants[i].number)
				if !complete && verdicts[i] != killed {
					verdicts[i] = undecided
				}
				progress()
			}
		})
	}
	for _, i := range rand.New(rand.NewPCG(o.seed, 1)).Perm(len(mutants)) {
		next <- i
	}
	close(next)
	wait.Wait()
	return verdicts
}

func judgeOne(ctx context.Context, m *mutated, tests []test, number int) verdict {
	if ctx.Err() != nil {
		return undecided
	}
	var together []string
	var alone []test
	var takes time.Duration
	for _, t := range tests {
		switch {
		case !t.hits[number]:
		case t.takes <= quick:
			together, takes = append(together, t.name), takes+t.takes
		default:
			alone = append(alone, t)
		}
	}
	if len(together)+len(alone) == 0 {
		return unreached
	}
	fails := func(names string, takes time.Duration) bool {
		_, err := execute(ctx, m, 5*takes+10*time.Second, []string{"ESPALIER_MUTANT=" + strconv.Itoa(number)}, "-test.failfast", "-test.run=^("+names+")$")
		return err != nil
	}
	if len(together) > 0 && fails(strings.Join(together, "|"), takes) {
		return decided(ctx, killed)
	}
	for _, t := range alone {
		if ctx.Err() != nil {
			return undecided
		}
		if fails(t.name, t.takes) {
			return decided(ctx, killed)
		}
	}
	return decided(ctx, survived)
}

// decided discards a result that was found while the time ran out.
func decided(ctx context.Context, v verdict) verdict {
	if ctx.Err() != nil {
		return undecided
	}
	return v
}

// execute runs a package's tests in its folder and returns their output.
func execute(ctx context.Context, m *mutated, limit time.Duration, environment []string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, m.executable, slices.Concat(arguments, m.arguments)...)
	c.Dir, c.Env = m.dir, append(os.Environ(), environment...)
	c.WaitDelay = time.Second
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	err := c.Run()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return output.String(), err
}
