package resourcemanager

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-project/espalier/internal/controller/kit"
)

// leading starts the features of the leader.
type leading struct {
	*Process
	rows []Row
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l leading) NeedLeaderElection() bool { return true }

// Start starts the first row, which identifies the source, and then all others (COM-1: after the cluster-identity
// bootstrap step), each when the informers of its reads exist. A row whose cluster is not available does not block
// others.
func (l leading) Start(ctx context.Context) error {
	return kit.Run(ctx, l.Manager, func(group *kit.Group) error {
		for i, row := range l.rows {
			if err := group.Add(manager.RunnableFunc(func(ctx context.Context) error { return l.start(ctx, group, &row, i == 0) })); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l leading) start(ctx context.Context, group *kit.Group, row *Row, first bool) error {
	if !first {
		select {
		case <-ctx.Done():
			return nil
		case <-l.identified:
		}
		if err := l.kept[row.Key()].Start(ctx); err != nil {
			return fmt.Errorf("feature %s: %w", row.Name, err)
		}
		select {
		case <-ctx.Done():
			return nil
		default:
		}
	}
	p := *l.Process
	p.Manager = group // Controllers that the feature adds start at once.
	if err := row.Start(ctx, &p); err != nil {
		return fmt.Errorf("feature %s: %w", row.Name, err)
	}
	return nil
}
