package kubectl

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/espalier-project/espalier/internal/process"
)

// progress counts, and reports the progress of long work on stderr.
type progress struct {
	*process.Progress

	mu        sync.Mutex
	what      string
	made, all int
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{Progress: process.NewProgress(out, now)}
}

// begin starts the count of something.
func (p *progress) begin(what string, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.made, p.all = what, 0, all
}

// step counts one, and reports it if it is time to.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	p.Tell(func() string { return fmt.Sprintf("%d of %d %s", p.made, p.all, p.what) })
}
