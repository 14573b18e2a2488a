package resourcemanager

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// leading begins what the leader runs.
type leading struct {
	*Process
	rows []Row
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l leading) NeedLeaderElection() bool { return true }

// Start begins the first row, which identifies the source, and then all others (COM-1: after the cluster-identity bootstrap step), each when
// what it reads is followed: one whose cluster is away holds up no other.
func (l leading) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, row := range l.rows {
		group.Go(func() error { return l.start(ctx, &row, i == 0) })
	}
	return group.Wait()
}

func (l leading) start(ctx context.Context, row *Row, first bool) error {
	if !first {
		select {
		case <-ctx.Done():
			return nil
		case <-l.identified:
		}
		if l.kept[row.Key()].Start(ctx) != nil || ctx.Err() != nil {
			return nil
		}
	}
	if err := row.Start(ctx, l.Process); err != nil {
		return fmt.Errorf("feature %s: %w", row.Name, err)
	}
	return nil
}
