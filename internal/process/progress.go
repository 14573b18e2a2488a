package process

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/espalier-project/espalier/internal/plaintext"
)

// progressAfter is the time before the first report of a verb, and between two reports.
const progressAfter = 2 * time.Second

// Progress reports the progress of a verb on stderr: on a terminal in one line, which the next report overwrites.
type Progress struct {
	out        io.Writer
	now        func() time.Time
	overwrites bool

	mu    sync.Mutex
	last  time.Time
	known bool
}

// NewProgress returns a Progress that starts now.
func NewProgress(out io.Writer, now func() time.Time) *Progress {
	return &Progress{out: plaintext.Unwrap(out), now: now, last: now(), overwrites: IsTerminal(out)}
}

// Report prints the text if a report is due.
func (p *Progress) Report(text func() string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.last) < progressAfter {
		return
	}
	p.last, p.known = now, true
	if p.overwrites {
		_, _ = fmt.Fprintf(p.out, "%s\x1b[K\r", plaintext.Line(text()))
		return
	}
	_, _ = fmt.Fprintln(p.out, plaintext.Line(text()))
}

// Done clears the line on the terminal, before other output.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overwrites && p.known {
		_, _ = fmt.Fprint(p.out, "\x1b[K")
	}
}

// IsTerminal reports whether a writer is a terminal.
func IsTerminal(out io.Writer) bool {
	file, ok := plaintext.Unwrap(out).(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
