// Package ratelimittest has test doubles for sharing look-ups between clients.
package ratelimittest

import (
	"context"
	"strings"

	"github.com/espalier-project/espalier/internal/ratelimit"
)

// Paths is a queue that notes whose look-ups wait in it, and refuses them if it is full.
type Paths struct {
	// Seen are the clients, as the queue would have them take turns: its levels with " | " between them.
	Seen []string
	// Full refuses all look-ups.
	Full bool
}

// Do notes whose look-up it is and does it at once, or returns ratelimit.ErrRefused.
func (p *Paths) Do(ctx context.Context, look func(context.Context) error) error {
	p.Seen = append(p.Seen, strings.Join(ratelimit.ClientOf(ctx), " | "))
	if p.Full {
		return ratelimit.ErrRefused
	}
	return look(ctx)
}
