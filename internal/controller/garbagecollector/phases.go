package garbagecollector

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/marked"
)

// learn passes the marked objects to the observers of references, before the first pass. It removes the marks of
// objects that are not collectable any more, because their owners have kept them.
func (r *Reconciler) learn(ctx context.Context, all []candidate) {
	var now []marked.Key
	candidates := make(map[marked.Key]bool, len(all))
	for _, c := range all {
		if candidates[c.Key] = true; c.marked {
			now = append(now, c.Key)
		}
	}
	for _, key := range r.Marked.Replace(now) {
		if candidates[key] {
			continue
		}
		if err := r.Marked.Unmark(ctx, marked.ByCollector, key); err != nil {
			log.FromContext(ctx).Info("Could not remove the mark of an object that is referenced again",
				"kind", marked.KindNames[key.Kind], "namespace", key.Namespace, "name", key.Name, "reason", err.Error())
		}
	}
}

// look lists all holders and separates unused objects from used ones. If there are no candidates, it lists nothing.
func (r *Reconciler) look(ctx context.Context, all []candidate) (unused, used []candidate, _ error) {
	if len(all) == 0 {
		return nil, nil, nil
	}
	graph, err := r.references(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range all {
		if graph.InUse(c.Kind, c.Namespace, c.Name) {
			used = append(used, c)
		} else {
			unused = append(unused, c)
		}
	}
	return unused, used, nil
}

// judge separates the objects to mark from those to delete now. An object to which something referred
// meanwhile is marked again.
func (r *Reconciler) judge(unused []candidate) (free, doomed []candidate) {
	for _, c := range unused {
		switch {
		case c.standing == internalreferences.Free || r.Marked.Unmarked(c.Key):
			free = append(free, c)
		case c.standing == internalreferences.Due:
			doomed = append(doomed, c)
		}
	}
	return free, doomed
}

func withMark(all []candidate) []candidate {
	var found []candidate
	for _, c := range all {
		if c.marked {
			found = append(found, c)
		}
	}
	return found
}

// each writes to several objects concurrently. An object that has changed since it was listed waits for the next run,
// and a failed write does not stop the others (GC-9, GC-10).
func (r *Reconciler) each(ctx context.Context, all []candidate, write func(context.Context, candidate) error) []error {
	refused := make([]error, len(all))
	failed := kit.Parallel(ctx, parallel, len(all), func(i int) error {
		err := write(ctx, all[i])
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		c := all[i]
		// An admission webhook may have written the text, which stays in memory.
		refused[i] = fmt.Errorf("%s %s/%s: %s", marked.KindNames[c.Kind], c.Namespace, c.Name, meta.Shortened(err.Error(), maxText))
		return refused[i]
	})
	for i := range all {
		if refused[i] == nil {
			delete(r.refused, all[i].object())
			continue
		}
		r.refused.failed(all[i].object(), refused[i], r.Clock.Now(), r.Config.SyncPeriod.Duration)
	}
	return failed
}

// unmark removes the mark of a referenced object (GC-19).
func (r *Reconciler) unmark(ctx context.Context, c candidate) error {
	return r.Marked.Unmark(ctx, marked.ByCollector, c.Key)
}

// mark marks an object, if its version is still the listed one (GC-17).
func (r *Reconciler) mark(ctx context.Context, c candidate) error {
	labels, annotations := internalreferences.Mark(c.content, r.Clock.Now())
	err := marked.Patch(ctx, r.Target, c.Key, map[string]any{
		"uid": c.uid, "resourceVersion": c.version, "labels": labels, "annotations": annotations,
	})
	if err != nil {
		return err
	}
	r.Marked.Mark(c.Key)
	log.FromContext(ctx).Info("Marked an unreferenced object for deletion", "kind", marked.KindNames[c.Kind], "namespace", c.Namespace, "name", c.Name)
	r.Metrics.markedObjects(marked.KindNames[c.Kind])
	return nil
}

// delete deletes an object if its version is still the listed one, and if this process has not handled a reference to
// it meanwhile (GC-18).
func (r *Reconciler) delete(ctx context.Context, c candidate) error {
	if r.Marked.Unmarked(c.Key) {
		return nil
	}
	kind := marked.KindNames[c.Kind]
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	err := r.Target.Delete(ctx, object, client.Preconditions{UID: ptr.To(c.uid), ResourceVersion: ptr.To(c.version)})
	if err != nil {
		return err
	}
	r.Marked.Forget(c.Key)
	log.FromContext(ctx).Info("Deleted an unreferenced object", "kind", kind, "namespace", c.Namespace, "name", c.Name)
	r.Metrics.deleted(kind)
	return nil
}
