package debug

import (
	"context"
	"errors"
	"time"
)

const (
	// atOnce limits the pages that are made at once, of all graphs of a process. The neighbourhoods of a page take some ten megabytes.
	atOnce = 2
	// patience bounds a request's wait for one of them. Its answer then says when to come again.
	patience = 5 * time.Second
	// writing limits the time in which a page is read: until then it keeps others waiting. A page of the usual size
	// takes a second.
	writing = 20 * time.Second
)

// Pages bounds the pages that are made at once.
type Pages struct{ turns chan struct{} }

// NewPages returns a bound for all pages of a process.
func NewPages() *Pages { return &Pages{make(chan struct{}, atOnce)} }

var errBusy = errors.New("other pages are being made; try again")

// begin waits for a turn, within limits, and returns how to give it back.
func (p *Pages) begin(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case p.turns <- struct{}{}:
		return func() { <-p.turns }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}
