package steps

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
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// WriteLog collects the objects that one run writes, for one log line and one Event (MRB-51). Repairs of drift have
// separate lines and a separate Event.
type WriteLog struct {
	mu    sync.Mutex
	names map[plan.Written][]string
	// checksum returns the checksum of the Secrets; it is nil if none were read.
	checksum func() string
}

type writeLogKey struct{}

// WithWriteLog returns a context whose writes are collected.
func WithWriteLog(ctx context.Context) (context.Context, *WriteLog) {
	t := &WriteLog{names: map[plan.Written][]string{}}
	return context.WithValue(ctx, writeLogKey{}, t), t
}

// SetChecksum sets the function that returns the checksum of the Secrets, before the first write.
func SetChecksum(ctx context.Context, checksum func() string) {
	if t, found := ctx.Value(writeLogKey{}).(*WriteLog); found {
		t.checksum = checksum
	}
}

// Wrote records an object that was written.
func Wrote(ctx context.Context, what plan.Written, name string) {
	if t, found := ctx.Value(writeLogKey{}).(*WriteLog); found {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.names[what] = append(t.names[what], name)
	}
}

// Deleted logs and records an object whose deletion was accepted.
func Deleted(ctx context.Context, name, reason string) {
	log.FromContext(ctx).WithName(meta.DeletionLogger).Info("Deleted an object", "resource", name, "reason", reason)
	Wrote(ctx, plan.Deleted(reason), name)
}

// Report writes the log line and the Event of a run that wrote something.
func (t *WriteLog) Report(ctx context.Context, events *source.Events, mr *resourcesv1alpha1.ManagedResource) {
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
	events.Report(ctx, mr, meta.ReasonObjectsWritten, written)
}
