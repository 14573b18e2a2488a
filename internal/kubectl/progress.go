package kubectl

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressAfter is how long a verb works without a word, and then between two of them.
const progressAfter = 2 * time.Second

// progress tells on stderr how far long work is.
type progress struct {
	out io.Writer
	now func() time.Time

	mu         sync.Mutex
	what       string
	made, all  int
	told       time.Time
	overwrites bool
}

func newProgress(out io.Writer, now func() time.Time) *progress {
	return &progress{out: out, now: now, told: now(), overwrites: isTerminal(out)}
}

// begin says what is counted from now on.
func (p *progress) begin(what string, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.made, p.all = what, 0, all
}

// step counts one, and tells of it if it is time to.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	if now := p.now(); now.Sub(p.told) >= progressAfter {
		p.told = now
		end := "\n"
		if p.overwrites {
			end = "\r"
		}
		_, _ = fmt.Fprintf(p.out, "%d of %d %s%s", p.made, p.all, p.what, end)
	}
}

// done leaves the line of the terminal to what is printed.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overwrites && p.made > 0 {
		_, _ = fmt.Fprint(p.out, "\x1b[K")
	}
}
