package admissioncontroller

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// soon is how often it is looked whether the time has come.
const soon = 50 * time.Millisecond

// later is started on every replica when the time has come.
type later struct {
	manager.Runnable
	come  func() bool
	clock clock.Clock
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (later) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (l later) Start(ctx context.Context) error {
	for !l.come() {
		select {
		case <-ctx.Done():
			return nil
		case <-l.clock.After(soon):
		}
	}
	return l.Runnable.Start(ctx)
}
