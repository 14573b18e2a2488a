package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// release removes the marks of objects that were marked in the last run and may not be collected any more: their owners
// have kept them (GC-19).
func (r *Reconciler) release(ctx context.Context, all []candidate) {
	before := r.marked
	r.marked = nil
	candidates := make(map[key]bool, len(all))
	for _, c := range all {
		if candidates[c.key] = true; c.marked {
			r.marked = append(r.marked, c.key)
		}
	}
	for _, key := range before {
		if candidates[key] {
			continue
		}
		if err := client.IgnoreNotFound(r.unmark(ctx, candidate{key: key})); err != nil {
			log.FromContext(ctx).Info("Could not remove the mark of an object that may not be collected any more",
				"kind", kindNames[key.kind], "namespace", key.namespace, "name", key.name, "reason", err.Error())
		}
	}
}

// look lists all holders and separates unused objects from used ones. Without objects it lists nothing.
func (r *Reconciler) look(ctx context.Context, all []candidate) (unused, used []candidate, _ error) {
	if len(all) == 0 {
		return nil, nil, nil
	}
	held, err := r.held(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range all {
		if held.InUse(c.kind, c.namespace, c.name) {
			used = append(used, c)
		} else {
			unused = append(unused, c)
		}
	}
	return unused, used, nil
}

// judge separates the objects to mark from those to delete now.
func judge(unused []candidate) (free, doomed []candidate) {
	for _, c := range unused {
		switch c.standing {
		case internalreferences.Free:
			free = append(free, c)
		case internalreferences.Due:
			doomed = append(doomed, c)
		}
	}
	return free, doomed
}

// withMark returns the candidates that have a mark.
func withMark(all []candidate) []candidate {
	var found []candidate
	for _, c := range all {
		if c.marked {
			found = append(found, c)
		}
	}
	return found
}

// each writes to objects, several at once. An object that has changed since it was listed is left for the next run, and a write that fails
// stops no other (GC-9, GC-10).
func (r *Reconciler) each(ctx context.Context, all []candidate, write func(context.Context, candidate) error) []error {
	refused := make([]error, len(all))
	failed := kit.Parallel(ctx, parallel, len(all), func(i int) error {
		err := write(ctx, all[i])
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		c := all[i]
		// The text is an admission webhook's, and is remembered.
		refused[i] = fmt.Errorf("%s: %s", c.key, meta.Shortened(err.Error(), maxText))
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

// unmark removes the mark of an object (GC-19).
func (r *Reconciler) unmark(ctx context.Context, c candidate) error {
	err := r.patch(ctx, c.key, map[string]any{
		"labels":      map[string]any{resourcesv1alpha1.LabelCondemned: nil},
		"annotations": map[string]any{resourcesv1alpha1.AnnotationCondemnedAt: nil, resourcesv1alpha1.AnnotationCondemnedAs: nil},
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Removed the mark of an object", "kind", kindNames[c.kind], "namespace", c.namespace, "name", c.name)
	r.Metrics.unmarked(kindNames[c.kind])
	return nil
}

// mark marks the version of an object that was judged (GC-17).
func (r *Reconciler) mark(ctx context.Context, c candidate) error {
	labels, annotations := internalreferences.Mark(c.content, r.Clock.Now())
	err := r.patch(ctx, c.key, map[string]any{
		"uid": c.uid, "resourceVersion": c.version, "labels": labels, "annotations": annotations,
	})
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Marked an unreferenced object for deletion", "kind", kindNames[c.kind], "namespace", c.namespace, "name", c.name)
	r.Metrics.markedObjects(kindNames[c.kind])
	return nil
}

// patch changes the metadata of a ConfigMap or Secret.
func (r *Reconciler) patch(ctx context.Context, key key, metadata map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return r.Target.Patch(ctx, key.object(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(internalreferences.Collector))
}

// object is the object as a request names it.
func (k key) object() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindNames[k.kind]))
	return object
}

// delete deletes the version of an object that was listed (GC-18).
func (r *Reconciler) delete(ctx context.Context, c candidate) error {
	err := r.Target.Delete(ctx, c.key.object(), client.Preconditions{UID: ptr.To(c.uid), ResourceVersion: ptr.To(c.version)})
	if err != nil {
		return err
	}
	kind := kindNames[c.kind]
	log.FromContext(ctx).Info("Deleted an unreferenced object", "kind", kind, "namespace", c.namespace, "name", c.name)
	r.Metrics.deleted(kind)
	return nil
}
