package target

import (
	"context"
	"math/rand/v2"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
)

// auditGrace is the time by which a watch may lag behind a list before a difference counts as missed.
const auditGrace = 5 * time.Second

const (
	// mostOrphans limits the orphans of one kind that an audit reports, and longestOrigin the bytes of an origin: anyone
	// who may write in the target can forge orphans.
	mostOrphans   = 1000
	longestOrigin = 1 << 10
)

// Orphan is an object that names a ManagedResource as its origin, but has no record in the tracker. The origin was
// written by a process like this one. Objects with the annotation keep-object are not orphans.
type Orphan struct {
	ID     objects.ID
	Origin string
	// Collectable is true if the garbage collector deletes such objects.
	Collectable bool
}

// Orphans has the callbacks of an audit.
type Orphans struct {
	// Found is called with the orphans of each kind, Ended at the end of each audit.
	Found func(ctx context.Context, orphans []Orphan)
	Ended func(ctx context.Context)
}

// Audit lists the metadata of each kind in use once a period, spread over the period, and compares it with the
// tracker, because a watch may miss a change. It counts, logs and repairs missed changes, and restarts the watch that
// missed them. It passes untracked objects with an origin to orphans. It runs until the context ends.
func (w *Watches) Audit(ctx context.Context, period time.Duration, orphans Orphans) error {
	pause := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for {
		scopes := w.audited()
		share := period / time.Duration(len(scopes)+1)
		if !pause(share/2 + time.Duration(rand.Int64N(int64(share)+1))) {
			return nil
		}
		for _, s := range scopes {
			if err := w.auditScope(ctx, s, orphans.Found); err != nil {
				w.log.Info("Could not audit a kind", "groupVersionKind", s.gvk.String(), "reason", err.Error())
			}
			if !pause(share) {
				return nil
			}
		}
		orphans.Ended(ctx)
	}
}

// audited returns the scopes to audit: those of labelled objects that are in use.
func (w *Watches) audited() []scope {
	w.mu.Lock()
	defer w.mu.Unlock()
	var scopes []scope
	for s, a := range w.active {
		if !s.all && a.users > 0 {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// auditScope lists a scope, reports the changes that its watch missed, and passes its orphans to foundOrphans.
func (w *Watches) auditScope(ctx context.Context, s scope, foundOrphans func(context.Context, []Orphan)) error {
	w.mu.Lock()
	a := w.active[s]
	w.mu.Unlock()
	if a == nil || !a.covers() {
		return nil // Its watch lists the scope as soon as possible.
	}
	c := &comparison{watches: w, scope: s, active: a}
	if err := a.list(ctx, func() error { return c.list(ctx) }); err != nil {
		return err
	}
	if len(c.audited.Differing) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(auditGrace):
		}
		c.complete(c.audited.Differing)
	}
	if len(c.orphans) > 0 {
		foundOrphans(ctx, c.orphans)
	}
	return c.readUnlabelled(ctx, c.audited.Unlabelled)
}

// comparison is the audit of one scope.
type comparison struct {
	watches *Watches
	scope   scope
	active  *activeWatch
	session *objects.ListSession
	audited objects.Audited
	orphans []Orphan
}

// list lists the scope, and finds the orphans and the changes that the tracker does not have yet.
func (c *comparison) list(ctx context.Context) error {
	w := c.watches
	served, err := w.client.mappings.of(ctx, c.scope.gvk)
	if err != nil {
		return err
	}
	options := metav1.ListOptions{}
	c.scope.narrow(&options, w.labelSelector)
	page := pagesOf(w.metrics, w.client.metadata.Resource(served.resource).Namespace(served.in(c.scope.namespace)).List)
	if _, err = listPages(ctx, options, page, paging{start: c.start, begin: c.begin, each: c.each}); err != nil {
		return err
	}
	c.audited = c.session.End()
	return nil
}

func (c *comparison) start() {
	w := c.watches
	c.session = w.tracker.StartListSession(objects.Audit, c.scope.gvk.GroupKind(), c.active.version(),
		func(ref objects.Ref) bool { return w.scopeOf(ref) == c.scope })
	c.orphans = nil
}

func (c *comparison) begin(version string) error {
	c.session.At(version)
	return nil
}

func (c *comparison) each(object runtime.Object) error {
	accessor, err := apimeta.Accessor(object)
	if err != nil {
		return err
	}
	observation := c.watches.view.metadata(c.scope.gvk, accessor)
	if c.watches.view.Whole(c.scope.gvk) {
		observation.Digest = 0 // This digest is only of the metadata.
	}
	if !c.session.Observe(observation).Tracked && len(c.orphans) < mostOrphans && c.isOrphan(accessor) {
		apiVersion, kind := c.scope.gvk.ToAPIVersionAndKind()
		c.orphans = append(c.orphans, Orphan{observation.ID, accessor.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin],
			ownership.IsCollectable(apiVersion, kind, accessor.GetLabels())})
	}
	return nil
}

// isOrphan reports whether an object that is not tracked has an origin that a process like this one wrote.
func (c *comparison) isOrphan(object metav1.Object) bool {
	annotations := object.GetAnnotations()
	origin := annotations[resourcesv1alpha1.AnnotationOrigin]
	return origin != "" && len(origin) <= longestOrigin && object.GetDeletionTimestamp() == nil &&
		!meta.Truthy(annotations, resourcesv1alpha1.AnnotationKeepObject) && c.watches.client.WroteOrigin(object)
}

// complete reports the changes that the watch has still not reported, and restarts the watch if there are any.
func (c *comparison) complete(differing []objects.Observation) {
	w, number := c.watches, 0
	for _, difference := range differing {
		if w.tracker.Observe(difference) {
			number++
			w.metrics.missed.WithLabelValues(c.scope.gvk.Kind).Inc()
			w.log.Info("A watch missed what became of an object", "groupVersionKind", c.scope.gvk.String(),
				"namespace", difference.ID.Namespace, "name", difference.ID.Name, "present", !difference.Gone)
		}
	}
	if number > 0 {
		c.active.renew()
	}
}

// readUnlabelled reads objects of the scope that its lists omit because they lack the label (MR-30).
func (c *comparison) readUnlabelled(ctx context.Context, unlabelled []objects.ID) error {
	w := c.watches
	for _, id := range unlabelled {
		served, err := w.client.mappings.of(ctx, c.scope.gvk)
		if err != nil {
			return err
		}
		_, err = w.read(ctx, c.scope.gvk, served.in(id.Namespace), id.Name, w.tracker.Get(id))
		if err != nil && !isNotFound(err) {
			return err
		}
	}
	return nil
}

// read reads an object from the API server and reports it to the tracker; before is its record before the read.
func (w *Watches) read(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string,
	before objects.Object) (objects.Observation, error) {
	object, err := w.client.Get(ctx, gvk, namespace, name)
	if err != nil {
		if isNotFound(err) && Gone(err) {
			w.tracker.Observe(objects.Observation{ID: objects.NewID(gvk.GroupKind(), namespace, name), Since: before.Revision,
				Gone: true})
		}
		return objects.Observation{}, err
	}
	observation := w.view.Observation(object)
	observation.Since = before.Revision
	w.tracker.Observe(observation)
	return observation, nil
}
