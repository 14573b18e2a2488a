package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/espalier-project/espalier/internal/feature"
)

// retry is the pause before a cluster that does not answer is asked again.
const retry = 2 * time.Second

// Kept waits for the caches of a feature's reads. It is a runnable of every replica; its users wait with Await, or
// call Synced.
type Kept struct {
	reads []kept
	clock clock.WithTicker
	log   logr.Logger

	// found ends once the caches keep all of it; informers are written before that, and never again.
	found chan struct{}

	mu        sync.Mutex
	informers []cache.Informer
	// begun is the number of reads that the caches were asked for.
	begun int
}

type kept struct {
	cluster *Cluster
	read    feature.Read
}

// Keep returns the caches of one feature's reads. Kinds that may not be served are left to the feature.
func Keep(clusters map[feature.Cluster]*Cluster, reads []feature.Read, c clock.WithTicker,
	log logr.Logger) (*Kept, error) {
	k := &Kept{clock: c, log: log, found: make(chan struct{})}
	for _, read := range reads {
		if read.Form != feature.Whole && read.Form != feature.Metadata || read.Optional {
			continue
		}
		cluster := clusters[read.Cluster]
		if cluster == nil || cluster.Cache == nil {
			return nil, fmt.Errorf("nothing is kept of the %s cluster, which %s is read from", read.Cluster, read.Kind)
		}
		k.reads = append(k.reads, kept{cluster, read})
	}
	return k, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *Kept) NeedLeaderElection() bool { return false }

// Start makes the caches keep it; a cluster that is away is asked again until it answers (PRC-11 asks the source
// likewise).
func (k *Kept) Start(ctx context.Context) error {
	for _, each := range k.reads {
		k.mu.Lock()
		k.begun++
		k.mu.Unlock()
		object, err := objectOf(each.cluster.scheme, &each.read)
		if err != nil {
			return err
		}
		for {
			informer, err := each.cluster.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
			if err == nil {
				k.mu.Lock()
				k.informers = append(k.informers, informer)
				k.mu.Unlock()
				break
			}
			k.log.Info("Kind cannot be followed yet", "cluster", each.read.Cluster, "kind", each.read.Kind.String(), "reason", err.Error())
			timer := k.clock.NewTimer(retry)
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C():
			}
		}
	}
	close(k.found)
	return nil
}

// Await returns when the caches keep all of it; whether they are complete is for Synced to say.
func (k *Kept) Await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.found:
		return nil
	}
}

// Synced reports whether the caches have all of it.
func (k *Kept) Synced() bool {
	select {
	case <-k.found:
	default:
		return false
	}
	for _, informer := range k.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// Awaited returns the names of the kinds of a cluster that the caches are asked for and do not have all of: those that
// are followed and not complete, and the one that cannot be followed yet.
func (k *Kept) Awaited(cluster feature.Cluster) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var kinds []string
	for i := range k.reads {
		if k.reads[i].read.Cluster == cluster && i < k.begun && !k.isComplete(i) {
			kinds = append(kinds, k.reads[i].read.Kind.Kind)
		}
	}
	return kinds
}

func (k *Kept) isComplete(i int) bool { return i < len(k.informers) && k.informers[i].HasSynced() }

// Empty reports whether nothing is kept.
func (k *Kept) Empty() bool { return len(k.reads) == 0 }
