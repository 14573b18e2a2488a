package deletionprotection

import (
	"context"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

const (
	// pageSize is the number of objects in a page of a list. The annotations of an object have at most 256 KiB, so a
	// page has at most 25 MiB, and usually some 200 KiB.
	pageSize = 100
	// maxObjects bounds a list: ten times the number of objects of one kind in one namespace of a large seed, and a
	// hundred pages, which take about a second.
	maxObjects = 10_000
	// moment is the time for which a list without an unconfirmed object is used for further reviews. An API server
	// sends the reviews of a collection's objects one after the other, some hundred per second, so the number of
	// lists grows with the duration of the deletion and not with the number of objects.
	moment = 2 * time.Second
	// listsAtOnce bounds the concurrent lists.
	listsAtOnce = 4
	// keptReads bounds the lists that are kept; each one was read within moment.
	keptReads = 1000
)

// collections checks the namespaces of collections, with one list for all reviews of one deletion.
type collections struct {
	source Lister
	clock  clock.PassiveClock
	slots  chan struct{}

	mu    sync.Mutex
	reads map[collection]*look
}

// collection identifies the objects that a client deletes, by kind and namespace. The review does not have the
// client's selector.
type collection struct {
	kind            schema.GroupVersionKind
	resource        metav1.GroupVersionResource
	namespace, user string
}

// look is a list that is in progress, or that found no unconfirmed object.
type look struct {
	// done is closed when the list has ended. The fields below do not change after that.
	done chan struct{}
	// unread is set if the list ended early because its first review ended.
	unread bool
	absent bool
	err    error
	ended  time.Time
}

func newCollections(source Lister, c clock.PassiveClock) *collections {
	return &collections{source: source, clock: c, slots: make(chan struct{}, listsAtOnce), reads: map[collection]*look{}}
}

// judge checks all objects in a collection's namespace (DP-12, DP-13).
func (c *collections) judge(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	of := collection{schema.GroupVersionKind(r.Kind), r.Resource, r.Namespace, r.UserInfo.Username}
	for {
		l, mine := c.join(of)
		if mine {
			c.look(ctx, of, l, r)
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return unreadable(ctx.Err())
		}
		if l.unread && !mine && ctx.Err() == nil {
			continue // The review that started the list has ended, but this one has not.
		}
		if l.absent {
			admission.Explain(ctx, "object was not found")
		}
		return l.err
	}
}

// join returns the list of a collection that is in progress or has just ended; mine is set if the caller has to start
// it.
func (c *collections) join(of collection) (l *look, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.reads[of]; l != nil {
		select {
		case <-l.done:
			if c.clock.Since(l.ended) < moment {
				return l, false
			}
		default:
			return l, false
		}
	}
	if len(c.reads) >= keptReads {
		c.tidyLocked()
	}
	l = &look{done: make(chan struct{})}
	c.reads[of] = l
	return l, true
}

// tidyLocked drops lists that are too old for further reviews.
func (c *collections) tidyLocked() {
	for of, l := range c.reads {
		select {
		case <-l.done:
			if c.clock.Since(l.ended) >= moment {
				delete(c.reads, of)
			}
		default:
		}
	}
}

// look reads a list. A refusal is not kept, because an object may be confirmed at any time.
func (c *collections) look(ctx context.Context, of collection, l *look, r *admissionv1.AdmissionRequest) {
	defer close(l.done)
	select {
	case c.slots <- struct{}{}:
		l.absent, l.err = c.list(ctx, r)
		<-c.slots
	case <-ctx.Done():
		l.err = unreadable(ctx.Err())
	}
	l.unread = l.err != nil && ctx.Err() != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.ended = c.clock.Now(); l.err != nil && c.reads[of] == l {
		delete(c.reads, of)
	}
}

// list reads metadata page by page, up to the first page with an object that is not confirmed. absent is set if the
// kind is not served.
func (c *collections) list(ctx context.Context, r *admissionv1.AdmissionRequest) (absent bool, err error) {
	options := []client.ListOption{client.InNamespace(r.Namespace), client.Limit(pageSize)}
	if isCRD(r) {
		options = append(options, client.MatchingLabels{Protected: "true"})
	}
	next, read := "", 0
	for {
		list := &metav1.PartialObjectMetadataList{} // A new list for each page, as decoders keep the fields that a later object lacks.
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind + "List"})
		err := c.source.List(ctx, list, append(options, client.Continue(next))...)
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, unreadable(err)
		}
		var unconfirmed []string
		for i := range list.Items {
			if !confirmed(list.Items[i].Annotations) {
				unconfirmed = append(unconfirmed, nameOf(list.Items[i].Namespace, list.Items[i].Name))
			}
		}
		if len(unconfirmed) > 0 {
			return false, refuse(r, unconfirmed, notSelected)
		}
		read += len(list.Items)
		if next = list.Continue; next == "" {
			return false, nil
		}
		if read >= maxObjects {
			return false, forbid("there are more than %d %s, too many to check all of them: delete them by name", maxObjects, resourceOf(r))
		}
	}
}

func unreadable(err error) error { return admission.Refuse(http.StatusInternalServerError, "%s", err) }
