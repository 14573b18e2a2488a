package controller

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// mostRead limits the Secrets whose writers one run reads. A fight is mostly about one.
const mostRead = 8

// noticeFight records the content that the run read. If the content alternates, it reads the writers, and reports
// managers that overwrite the Secrets or the specification in turn (MRB-41).
func (r *normalRun) noticeFight(ctx context.Context) error {
	if r.taken.Last == nil || r.taken.HasRead(r.mr.Generation, r.content.versions) {
		return nil // Nothing is known to have changed.
	}
	read := lifecycle.ContentRead{Digest: meta.ContentDigest(&r.mr.Spec, r.content.checksum())}
	if !r.states.stepPresent(r.mr, read).Has(lifecycle.FindWriters) {
		return nil
	}
	found, err := r.findWriters(ctx)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not find out who wrote the specification", "reason", err.Error())
		return nil // The next change asks again.
	}
	command, isFight := r.states.stepPresent(r.mr, found).Find(lifecycle.TellFight)
	if !isFight {
		return nil
	}
	events := make([]string, 0, len(command.Fights))
	for _, fight := range command.Fights {
		r.Metrics.sourceFights.WithLabelValues(fight.Object.Kind).Inc()
		events = append(events, fight.String()+"; changes are applied twice a minute at most")
	}
	log.FromContext(ctx).Info("Several managers overwrite each other in the source", "fights", events)
	r.warn(ctx, r.mr, meta.ReasonSourceFight, events)
	return nil
}

// findWriters returns the owners of the content that has changed since the last successful run. Secrets were read with
// their writers; the cache has no writers of the ManagedResource.
func (r *normalRun) findWriters(ctx context.Context) (found lifecycle.WritersFound, err error) {
	changed := slices.DeleteFunc(slices.Sorted(maps.Keys(r.content.versions)), func(name string) bool {
		return r.content.versions[name] == r.taken.Last.Secrets[name]
	})
	for _, name := range changed[:min(len(changed), mostRead)] {
		key := types.NamespacedName{Namespace: r.mr.Namespace, Name: name}
		found.Writers = append(found.Writers, r.reading.Writers(key)...)
	}
	if r.mr.Generation == r.taken.Last.Generation {
		return found, nil
	}
	writers, generation, err := r.Statuses.Writers(ctx, r.mr)
	found.Writers, found.Later = append(found.Writers, writers...), generation != r.mr.Generation
	return found, err
}
