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

// retry is the pause before the next request to a cluster that does not respond.
const retry = 2 * time.Second

// Kept waits for the caches of a feature's reads. It is a runnable of every replica; its users wait with Await, or
// call Synced.
type Kept struct {
	reads []kept
	clock clock.WithTicker
	log   logr.Logger

	// found is closed once the caches have informers for all reads; informers do not change after that.
	found chan struct{}

	mu        sync.Mutex
	informers []cache.Informer
	// begun is the number of reads whose informers were requested.
	begun int
}

type kept struct {
	cluster *Cluster
	read    feature.Read
}

// Keep returns the caches of one feature's reads. The feature itself handles kinds that may not be served.
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

// Start requests the informers from the caches, and retries until the cluster responds (PRC-11: the same applies to
// the source).
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

// Await waits until the caches have informers for all reads. Synced reports whether these are synced.
func (k *Kept) Await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.found:
		return nil
	}
}

// Synced reports whether the caches are synced for all reads.
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

// Awaited returns the names of the requested kinds of a cluster that are not synced, or for which there is no
// informer yet.
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

// Empty reports whether the feature has no cached reads.
func (k *Kept) Empty() bool { return len(k.reads) == 0 }
