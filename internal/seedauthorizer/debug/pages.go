package debug

import (
	"context"
	"errors"
	"time"
)

const (
	// atOnce limits the pages that are made concurrently, of all graphs of a process. The neighbourhoods of a page
	// take some ten megabytes.
	atOnce = 2
	// patience limits the time that a request waits for one of them. Its response then has the time for a retry.
	patience = 5 * time.Second
	// writing limits the time in which a client reads a page, because other requests wait until then. A page of the
	// usual size takes a second.
	writing = 20 * time.Second
)

// Pages limits the pages that are made concurrently.
type Pages struct{ turns chan struct{} }

// NewPages returns a limit for all pages of a process.
func NewPages() *Pages { return &Pages{make(chan struct{}, atOnce)} }

var errBusy = errors.New("other pages are being made; try again")

// begin waits for a turn, within limits, and returns the function that ends it.
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
