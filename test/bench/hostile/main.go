// hostile plays clients that mean harm against the executables as processes, beside honest ones, and prints what becomes of those: how long their
// answers take, how many are refused, what the process takes of memory and processor before, during and after.
//
//	make hostile                                   everything, within three minutes
//	go run ./test/bench/hostile -bin bin -only writers
//
// All reviews of a scenario travel on one HTTP/2 connection, as those of kube-apiserver do. The clusters are API servers in memory (test/simulation),
// so that no control plane is needed. Everything listens on 127.0.0.1. The exit code is 1 if a goal is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// longest is the longest time that a run may take.
const longest = 4 * time.Minute

func main() {
	bin := flag.String("bin", "bin", "folder with the executables")
	only := flag.String("only", "", "regular expression of the scenarios to run")
	short := flag.Bool("short", false, "short phases, as in make test: counts and memory are meaningful, times are not")
	flag.Parse()
	quiet()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	missed, err := run(ctx, *bin, *only, *short)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
	}
	if missed || err != nil {
		os.Exit(1)
	}
}

// quiet silences the libraries, which report connections that hostile clients leave behind.
func quiet() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// scenario is one kind of hostile clients beside the honest ones that they may hurt.
type scenario struct {
	// rule is what the contract says about it.
	rule, name string
	// hostile and honest say what the clients do.
	hostile, honest string
	run             func(*stage) error
}

var scenarios = []scenario{
	{"PSL-3", "labels", "a Secret with 16,000 provider labels, whose client hangs up after 200 ms", "Secrets of 80 KiB, 20/s", labels},
	{"CW-2", "writers", "64 writers of reviews of 2 MB, on the same connection", "small reviews, 100/s", writers},
	{"CW-2", "large", "16 writers of reviews of 2 MB, on the same connection", "reviews of 100 KiB, 10/s", large},
	{"CW-2", "shoots", "none; the garden takes 50 ms for an answer", "100 Shoots of 80 KiB at once", shoots},
	{"T3-1", "creations", "40 extensions of another seed that create as fast as they can", "a gardenlet that creates at its limits: 100/s, 130 at once", creations},
	{"T3-1", "deletions", "40 extensions of another seed that ask about invented names", "a gardenlet that deletes what is gone, at its limits", deletions},
	{"T3-2", "invented", "150 ServiceAccounts of self-hosted shoots that do not exist", "a gardenlet that updates Shoots which are new, 10/s", invented},
	{"CW-2", "unread", "200 streams on one connection whose answers are never read", "small reviews, 100/s", unread},
	{"TR-24", "stripped", "a webhook of the target that strips the token from its Secret", "another Secret that asks for a token", stripped},
	{"T3-6", "target", "80 KiB of aliases in a Secret of the target", "another Secret that asks for a token", target},
}

// run plays the scenarios that match, prints the tables, and reports whether a goal was missed.
func run(ctx context.Context, bin, only string, short bool) (missed bool, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "espalier-hostile-")
	if err != nil {
		return false, err
	}
	defer func() {
		if err == nil {
			_ = os.RemoveAll(dir)
			return
		}
		fmt.Fprintln(os.Stderr, "logs are in", dir)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("the run took longer than %s", longest))
	defer cancel()
	var all []*stage
	defer func() { printAll(os.Stdout, all) }() // Also what there is after a failure.
	for _, s := range scenarios {
		if !pattern.MatchString(s.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%-12s %s\n", s.name, s.hostile)
		stage := newStage(ctx, s, bin, filepath.Join(dir, s.name), short)
		all = append(all, stage)
		if err := stage.play(); err != nil {
			return missed, fmt.Errorf("%s: %w", s.name, err)
		}
		for _, g := range stage.goals {
			missed = missed || !g.met
			fmt.Fprintf(os.Stderr, "%-12s %s\n", "", g)
		}
		stage.explain(os.Stderr)
	}
	return missed, nil
}
