package process

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/espalier-project/espalier/internal/plaintext"
)

// progressAfter is the time that a verb works before its first report, and between two reports.
const progressAfter = 2 * time.Second

// Progress reports the progress of long work on stderr: on a terminal in one line, which the next one overwrites.
type Progress struct {
	out        io.Writer
	now        func() time.Time
	overwrites bool

	mu    sync.Mutex
	last  time.Time
	known bool
}

// NewProgress returns a progress that begins now.
func NewProgress(out io.Writer, now func() time.Time) *Progress {
	return &Progress{out: plaintext.Unwrap(out), now: now, last: now(), overwrites: IsTerminal(out)}
}

// Report reports it if it is time to.
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

// Done clears the line of the terminal for further output.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overwrites && p.known {
		_, _ = fmt.Fprint(p.out, "\x1b[K")
	}
}

// IsTerminal reports whether a writer is one.
func IsTerminal(out io.Writer) bool {
	file, ok := plaintext.Unwrap(out).(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
