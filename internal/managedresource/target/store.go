package target

import (
	"context"
	"errors"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// store reports the lists and watches of a scope to the tracker; it stores nothing.
type store struct {
	watches *Watches
	scope   scope
	active  watchSession
}

var (
	_ cache.ReflectorStore         = (*store)(nil)
	_ cache.ResourceVersionUpdater = (*store)(nil)
)

var customResourceDefinitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error {
	if !s.active.isCurrent() {
		return nil
	}
	if s.scope == allAutoscalers {
		autoscaler, err := apimeta.Accessor(object)
		if err == nil {
			s.watches.autoscalers.set(autoscaler.GetUID(), s.watches.autoscalers.target(object))
		}
		return err
	}
	observation, err := s.observation(object)
	if err == nil {
		s.watches.tracker.Observe(observation)
	}
	return err
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater: the reflector calls it for every event and bookmark.
func (s *store) UpdateResourceVersion(resourceVersion string) {
	s.active.reached(resourceVersion)
}

// Replace implements cache.ReflectorStore. The list must be empty, because its pages were already reported.
func (s *store) Replace(objects []any, _ string) error {
	if len(objects) > 0 {
		return fmt.Errorf("%d objects were not reported by their list", len(objects))
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	if !s.active.isCurrent() {
		return nil
	}
	if s.scope == allAutoscalers {
		s.watches.autoscalers.set(accessor.GetUID(), objects.ID{})
		return nil
	}
	if definition, ok := object.(*unstructured.Unstructured); ok && s.scope.gvk.GroupKind() == customResourceDefinitions {
		s.watches.client.mappings.forgetKind(kindDefinedBy(definition))
	}
	gone := s.watches.view.metadata(s.scope.gvk, accessor)
	gone.Gone = true
	s.watches.tracker.Observe(gone)
	return nil
}

func kindDefinedBy(definition *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// errRenewed ends a list whose session is no longer current.
var errRenewed = errors.New("the scope is listed anew")

// list reports the complete scope, at the start and after every gap. The first list after the start has entire
// objects, because they are about to be compared.
func (s *store) list(ctx context.Context, requests scopeRequests) (string, error) {
	version := ""
	err := s.active.list(ctx, func() (err error) {
		whole := s.watches.live.expects(s.scope) && requests.whole != nil
		version, err = s.listAs(ctx, requests, whole)
		if err == nil && !s.active.listed(version) {
			err = errRenewed
		}
		s.watches.live.listed(s.scope, err == nil && whole) // After the scope is covered, for which comparisons wait.
		return err
	})
	return version, err
}

func (s *store) listAs(ctx context.Context, requests scopeRequests, whole bool) (string, error) {
	page := requests.list
	if whole {
		pages, end, err := s.watches.live.begin(ctx, s.scope, requests.whole)
		if err != nil {
			return "", err
		}
		defer end()
		page = pages
	}
	options := metav1.ListOptions{}
	s.scope.narrow(&options, s.watches.labelSelector)
	l := &scopeList{store: s, whole: whole, autoscalers: map[types.UID]objects.ID{}}
	version, err := listPages(ctx, options, page, paging{start: l.start, begin: l.begin, each: l.each})
	if err != nil {
		return "", err
	}
	l.end()
	return version, nil
}

// scopeList is the state of one list of a scope.
type scopeList struct {
	*store
	whole   bool
	session *objects.ListSession
	packer  *packer
	// autoscalers are the targets of listed autoscalers.
	autoscalers map[types.UID]objects.ID
}

func (l *scopeList) start() {
	clear(l.autoscalers)
	l.packer = &packer{}
	l.session = l.watches.tracker.StartListSession(objects.Report, l.scope.gvk.GroupKind(), l.active.version(), l.covers)
}

func (l *scopeList) begin(version string) error {
	if !l.active.isCurrent() {
		return errRenewed
	}
	l.session.At(version)
	return nil
}

func (l *scopeList) each(object runtime.Object) error {
	if l.scope == allAutoscalers {
		autoscaler, err := apimeta.Accessor(object)
		if err == nil {
			l.autoscalers[autoscaler.GetUID()] = l.watches.autoscalers.target(object)
		}
		return err
	}
	observation, err := l.observation(object)
	if err != nil {
		return err
	}
	recorded := l.session.Observe(observation)
	if u, ok := object.(*unstructured.Unstructured); ok && l.whole && recorded.Tracked && !recorded.InSync {
		l.watches.live.keep(l.packer, u, recorded.Revision.Requested)
	}
	return nil
}

// end reports that the list is complete.
func (l *scopeList) end() {
	if l.scope == allAutoscalers {
		l.watches.autoscalers.listed(l.autoscalers)
		return
	}
	l.session.End()
}

// covers reports whether the store's scope reports an object.
func (s *store) covers(ref objects.Ref) bool { return s.watches.scopeOf(ref) == s.scope }

func (s *store) observation(object any) (objects.Observation, error) {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		s.watches.Defines(object)
		return s.watches.view.Observation(object), nil
	case *metav1.PartialObjectMetadata:
		return s.watches.view.metadata(s.scope.gvk, object), nil
	}
	return objects.Observation{}, fmt.Errorf("unexpected object %T", object)
}
