package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// reasonWarning is the reason of Events about warnings of the API server.
const reasonWarning = "APIWarning"

// Reasons of deletions.
const (
	manifestGone = "no manifest has the object"
	deletedWith  = "the ManagedResource is deleted"
	classChanged = "the class of the ManagedResource changed"
	recreated    = "the object is recreated"
	claimDeleted = "the StatefulSet is deleted"
)

// trail collects the objects that one run writes, for one log line and one Event (MRB-51). Repairs of drift have lines
// and an Event of their own.
type trail struct {
	mu    sync.Mutex
	names map[plan.Written][]string
	// checksum returns the checksum of the Secrets; it is nil if none were read.
	checksum func() string
}

type trailKey struct{}

// withTrail returns a context whose writes are collected.
func withTrail(ctx context.Context) (context.Context, *trail) {
	t := &trail{names: map[plan.Written][]string{}}
	return context.WithValue(ctx, trailKey{}, t), t
}

// setChecksum sets the function that returns the checksum of the Secrets, before the first write.
func setChecksum(ctx context.Context, checksum func() string) {
	if t, found := ctx.Value(trailKey{}).(*trail); found {
		t.checksum = checksum
	}
}

// wrote records an object that was written.
func wrote(ctx context.Context, what plan.Written, name string) {
	if t, found := ctx.Value(trailKey{}).(*trail); found {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.names[what] = append(t.names[what], name)
	}
}

// deleted logs and records an object whose deletion was accepted.
func deleted(ctx context.Context, name, reason string) {
	log.FromContext(ctx).WithName(meta.DeletionLogger).Info("Deleted an object", "resource", name, "reason", reason)
	wrote(ctx, plan.Deleted(reason), name)
}

// deletionReason returns the reason for which a run prunes.
func (r *Reconciler) deletionReason(mr *resourcesv1alpha1.ManagedResource) string {
	switch {
	case mr.DeletionTimestamp != nil:
		return deletedWith
	case r.Class.MovedAway(mr):
		return classChanged
	}
	return manifestGone
}

// tellWrites writes the log line and the Event of a run that wrote something.
func (r *Reconciler) tellWrites(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, t *trail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.names) == 0 {
		return
	}
	var sentences []string
	for _, what := range slices.SortedFunc(maps.Keys(t.names), plan.CompareWritten) {
		sentences = append(sentences, what.Sentence(t.names[what]))
	}
	if t.checksum != nil { // First, so that a message which is too long still has it.
		sentences = slices.Insert(sentences, 0, "Checksum of the Secrets: "+t.checksum())
	}
	written := strings.Join(sentences, ". ")
	log.FromContext(ctx).Info("Wrote objects", "written", written)
	r.Events.Tell(ctx, mr, meta.ReasonObjectsWritten, written)
}
