// local is what make up runs, with a tour of what it does: a garden that asks admission-controller, a seed and a shoot with
// resource-manager between them, and node-agent-authorizer, which the shoot asks; all on this machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	bin := flag.String("bin", "bin", "folder with the executables")
	once := flag.Bool("once", false, "end after the tour, with its result as exit code")
	before := flag.String("before", "", "phases that ended before, with their seconds, for the line at the end")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	times := &times{}
	if *before != "" {
		times.ended = append(times.ended, *before)
	}
	if err := run(ctx, *bin, *once, times); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "\nfailed:", err)
		os.Exit(1)
	}
}

// run plays both parts of the tour at the same time, as they have no cluster in common. The garden's is shown first.
func run(ctx context.Context, bin string, once bool, times *times) error {
	dir, err := filepath.Abs(".local")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	fmt.Println("the tour takes about half a minute; parts run at the same time and are shown one after the other")
	garden, shoot := &gardenTour{script: &script{}}, &tour{script: &script{}}
	defer func() {
		var stopping sync.WaitGroup
		stopping.Go(garden.stop)
		stopping.Go(shoot.stop)
		stopping.Wait()
	}()
	garden.show(os.Stdout)
	parts, partsContext := errgroup.WithContext(ctx)
	parts.Go(func() error {
		defer shoot.show(os.Stdout)
		defer times.measure("garden")()
		return garden.play(partsContext, bin, dir)
	})
	parts.Go(func() error { return shoot.play(partsContext, bin, dir, times) })
	if err := parts.Wait(); err != nil {
		return fmt.Errorf("%w (logs are in %s)", err, relative(dir))
	}
	if once {
		shoot.heading("Everything was as it should be")
	} else {
		shoot.explain()
		garden.explain()
	}
	shoot.step("seconds: %s", times)
	if once {
		return nil
	}
	<-ctx.Done()
	shoot.heading("Stopping")
	return nil
}

// times are the durations of phases, in the order in which they ended.
type times struct {
	mu    sync.Mutex
	ended []string
}

// measure measures a phase until the returned function is called.
func (t *times) measure(phase string) (end func()) {
	started := time.Now()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ended = append(t.ended, fmt.Sprintf("%s %.0f", phase, time.Since(started).Seconds()))
	}
}

func (t *times) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.ended, ", ")
}

func relative(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil {
			return rel
		}
	}
	return path
}
