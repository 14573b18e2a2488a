// Package tenants serves many shoots from a folder with a file for each: <name>.yaml is served under …/<name>. The
// folder is read again periodically. If the files of a shoot change, a new view of it is made, and the former view
// serves it until the new one is complete.
package tenants

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
)

// period is the interval of reading the folder: mounted Secrets change within a minute anyway.
const period = 5 * time.Second

// Handler serves one shoot.
type Handler struct {
	http.Handler
	// Ready reports whether the handler has all data.
	Ready func() bool
	// Ended reports whether the handler has stopped following the shoot because it exceeded its limits. Then the
	// shoot is served anew.
	Ended func() bool
}

// Options are the dependencies of a Directory; each is required.
type Options struct {
	// Path is the path of the folder.
	Path string
	// Serve begins to serve a shoot until the context ends.
	Serve func(ctx context.Context, name string, entry *config.ShootEntry) (Handler, error)
	// Absent returns the handler for a shoot that is not served.
	Absent func(name string) http.Handler
	Clock  clock.Clock
	Log    logr.Logger
}

// Directory is a folder of shoots.
type Directory struct {
	Options

	read atomic.Bool
	mu   sync.RWMutex
	// shoots are the served shoots; next are their successors that are not ready yet.
	shoots, next map[string]*served
}

type served struct {
	Handler
	digest [sha256.Size]byte
	stop   context.CancelFunc
}

// New returns a folder of shoots. It serves none before Start.
func New(o Options) *Directory {
	return &Directory{Options: o, shoots: map[string]*served{}, next: map[string]*served{}}
}

// Read reports whether the folder has been read.
func (d *Directory) Read() bool { return d.read.Load() }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (d *Directory) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (d *Directory) Start(ctx context.Context) error {
	for {
		if err := d.look(ctx); err != nil {
			d.Log.Error(err, "Folder of shoots cannot be read; the shoots known before are served", "path", d.Path)
		} else {
			d.read.Store(true)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.Clock.After(period):
		}
	}
}

// look compares the folder with the served shoots.
func (d *Directory) look(ctx context.Context) error {
	files, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for _, file := range files {
		name, is := strings.CutSuffix(file.Name(), suffix)
		if !is || name == "" || strings.HasPrefix(name, ".") {
			continue
		}
		present[name] = true
		if err := d.update(ctx, name); err != nil {
			d.Log.Error(err, "Entry of a shoot cannot be used; its former entry is served", "shoot", name)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, from := range []map[string]*served{d.shoots, d.next} {
		for name, s := range from {
			if !present[name] {
				s.stop()
				delete(from, name)
			}
		}
	}
	for name, s := range d.next {
		if s.Ready() {
			d.shoots[name].stop()
			d.shoots[name] = s
			delete(d.next, name)
		}
	}
	return nil
}

// update serves a shoot if it is new or its files have changed.
func (d *Directory) update(ctx context.Context, name string) error {
	entry, digest, err := readEntry(d.Path, name)
	if err != nil {
		return err
	}
	d.mu.RLock()
	current, next := d.shoots[name], d.next[name]
	d.mu.RUnlock()
	if latest := cmp.Or(next, current); latest != nil && latest.digest == digest && !latest.Ended() {
		return nil
	}
	shootContext, stop := context.WithCancel(ctx)
	handler, err := d.Serve(shootContext, name, entry)
	if err != nil {
		stop()
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	fresh := &served{handler, digest, stop}
	if next != nil {
		next.stop()
	}
	if current == nil {
		d.shoots[name] = fresh
	} else {
		d.next[name] = fresh
	}
	d.Log.Info("Serving a shoot", "shoot", name)
	return nil
}
