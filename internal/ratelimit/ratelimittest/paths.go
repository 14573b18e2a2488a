// Package ratelimittest has test doubles for sharing lookups between clients.
package ratelimittest

import (
	"context"
	"strings"

	"github.com/espalier-project/espalier/internal/ratelimit"
)

// Paths is a queue that records the clients whose lookups wait in it, and refuses lookups if it is full.
type Paths struct {
	// Seen are the clients in the form in which the queue orders them: their paths, with " | " between the parts.
	Seen []string
	// Full makes Do refuse all lookups.
	Full bool
}

// Do records the client of a lookup and makes it at once, or returns ratelimit.ErrRefused.
func (p *Paths) Do(ctx context.Context, look func(context.Context) error) error {
	p.Seen = append(p.Seen, strings.Join(ratelimit.ClientOf(ctx), " | "))
	if p.Full {
		return ratelimit.ErrRefused
	}
	return look(ctx)
}
