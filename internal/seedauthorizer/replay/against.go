package replay

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// Print writes a decision in the form that Against reads: the position of the request, the decision and the rule.
func Print(out io.Writer, e *auditlog.Event, d rules.Decision) error {
	said := text(d.Allowed)
	if !d.Allowed && d.Unseen {
		said = unseen
	}
	item := ""
	if e.Item > 0 { // Executables that read no lists print no number.
		item = fmt.Sprintf(" %d", e.Item)
	}
	_, err := fmt.Fprintf(out, "%d %d %s %q%s\n", e.FileNumber, e.Line, said, d.Rule, item)
	return err
}

// unseen stands for a refusal that a lookup might have changed.
const unseen = "Unseen"

// Against reads the decisions of another executable about the same log, in its order.
type Against struct {
	from *bufio.Reader
	// ahead is the decision that was read last; ready is true while it has not been used.
	ahead decision
	ready bool
	ended bool
}

// decision is a decision of another executable.
type decision struct {
	file, line, item int
	rules.Decision
}

// NewAgainst reads decisions.
func NewAgainst(from io.Reader) *Against { return &Against{from: bufio.NewReaderSize(from, 64<<10)} }

// next returns the decision about an event. An executable that does not decide about it at all has no opinion.
func (a *Against) next(e *auditlog.Event) (rules.Decision, error) {
	for {
		if err := a.read(); err != nil {
			return rules.Decision{}, err
		}
		order := cmp.Or(cmp.Compare(a.ahead.file, e.FileNumber), cmp.Compare(a.ahead.line, e.Line), cmp.Compare(a.ahead.item, e.Item))
		switch {
		case a.ended || order > 0:
			return rules.Decision{}, nil
		case order == 0:
			a.ready = false
			return a.ahead.Decision, nil
		}
		a.ready = false // No request here is at this position.
	}
}

func (a *Against) read() error {
	if a.ready || a.ended {
		return nil
	}
	line, err := a.from.ReadString('\n')
	if errors.Is(err, io.EOF) && line == "" {
		a.ended = true
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var d decision
	var said string
	if n, err := fmt.Sscanf(line, "%d %d %s %q %d", &d.file, &d.line, &said, &d.Rule, &d.item); n < 4 {
		return fmt.Errorf("the other executable prints no decision: %w", err)
	}
	d.Allowed, d.Unseen = said == allow, said == unseen
	a.ahead, a.ready = d, true
	return nil
}
