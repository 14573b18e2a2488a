package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// discoveryTimeout limits one request for the kinds of a group and version: the API server answers from memory, and
// an aggregated one that hangs must not delay other kinds.
const discoveryTimeout = 10 * time.Second

// mapping is the resource under which the API server serves the objects of a kind. It is immutable: a kind that is
// served again gets a new one.
type mapping struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// unreadable is true if discovery reports that the API has no get, for instance for SubjectAccessReviews, which are
	// only answers and are never stored.
	unreadable bool
	// scales and resizes are true if discovery lists the subresource scale or resize.
	scales, resizes bool
}

// isUnreadable reports whether an API has no get. An API that does not list its verbs counts as readable.
func isUnreadable(verbs metav1.Verbs) bool { return len(verbs) > 0 && !slices.Contains(verbs, "get") }

// in returns the namespace for requests: the given one, or none if the kind is cluster-scoped.
func (m *mapping) in(namespace string) string {
	if m.namespaced {
		return namespace
	}
	return ""
}

// readable returns an error if objects of the kind cannot be read or deleted (MRX-19).
func (m *mapping) readable(name string) error {
	if !m.unreadable {
		return nil
	}
	return &unreadableError{apierrors.NewNotFound(m.resource.GroupResource(), name)}
}

// unreadableError means that the API of a kind has no objects that can be read.
type unreadableError struct{ error }

func (e *unreadableError) Error() string {
	return e.error.Error() + ": the API of its kind has no objects that can be read"
}

func (e *unreadableError) Unwrap() error { return e.error }

// Unreadable reports whether an error means that the API of a kind cannot read its objects.
func Unreadable(err error) bool {
	var unreadable *unreadableError
	return errors.As(err, &unreadable) || apierrors.IsMethodNotSupported(err)
}

// CannotRead reports whether the API of a kind cannot read its objects, according to discovery.
func (c *Client) CannotRead(ctx context.Context, gvk schema.GroupVersionKind) bool {
	served, err := c.mappings.of(ctx, gvk)
	return err == nil && served.unreadable
}

// mappings caches the mapping of each kind, as discovery reported it.
//
// Invariant: a mapping is removed at once when the API server answers that its path does not exist, and when the end
// of its CustomResourceDefinition is observed, even before an earlier request to discovery is answered. It is never
// stored that a kind is not served.
type mappings struct {
	metrics *Metrics
	client  rest.Interface

	// discoveries share requests in flight, so that many objects of a kind send one.
	discoveries singleflight.Group

	mu     sync.Mutex
	byKind map[schema.GroupVersionKind]*mapping
	// changes counts the observed changes of kinds.
	changes     int
	definitions definitions
}

// discovered has the kinds of a group and version. It is outdated if a change of any kind was observed after the
// request was sent: the answer may be from before the change.
type discovered struct {
	resources []metav1.APIResource
	changes   int
}

func newMappings(client rest.Interface, metrics *Metrics) *mappings {
	return &mappings{client: client, metrics: metrics, byKind: map[schema.GroupVersionKind]*mapping{},
		definitions: definitions{map[schema.GroupVersionKind]*definition{}, map[schema.GroupKind]definitionVersion{}}}
}

// outdatedAnswers limits the requests to discovery for one kind, which are repeated while their answers are outdated.
const outdatedAnswers = 3

// of returns the mapping of a kind; apimeta.NoKindMatchError if the kind is not served. Waiting ends with the context.
func (m *mappings) of(ctx context.Context, gvk schema.GroupVersionKind) (*mapping, error) {
	m.mu.Lock()
	known := m.byKind[gvk]
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	for range outdatedAnswers {
		found, err := m.discoverOnce(ctx, gvk.GroupVersion())
		if err != nil {
			return nil, fmt.Errorf("asking the target cluster for the kinds of %s: %w", gvk.GroupVersion(), err)
		}
		if served, fresh := m.remember(gvk, found); fresh {
			if served == nil {
				return nil, notServed(gvk)
			}
			return served, nil
		}
	}
	return nil, fmt.Errorf("the kinds of %s change faster than they can be discovered", gvk.GroupVersion())
}

// remember stores and returns the mapping of a kind from an answer of discovery; nil if the kind is not served. fresh
// is false if the answer is outdated.
func (m *mappings) remember(gvk schema.GroupVersionKind, answer discovered) (served *mapping, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answer.changes != m.changes {
		return nil, false
	}
	for i := range answer.resources {
		r := &answer.resources[i]
		if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
			has := func(subresource string) bool {
				return slices.ContainsFunc(answer.resources,
					func(other metav1.APIResource) bool { return other.Name == r.Name+"/"+subresource })
			}
			found := &mapping{gvk.GroupVersion().WithResource(r.Name), r.Namespaced, isUnreadable(r.Verbs), has("scale"),
				has("resize")}
			if before := m.byKind[gvk]; before != nil && *before == *found {
				return before, true
			}
			m.byKind[gvk] = found
			return found, true
		}
	}
	return nil, true
}

func notServed(gvk schema.GroupVersionKind) error {
	return &apimeta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// discoverOnce requests the kinds of a group and version; concurrent callers share one request. A group that does not
// exist has no kinds.
func (m *mappings) discoverOnce(ctx context.Context, gv schema.GroupVersion) (discovered, error) {
	m.mu.Lock()
	changes := m.changes
	m.mu.Unlock()
	answer := m.discoveries.DoChan(fmt.Sprint(gv, " ", changes), func() (any, error) { return m.discover(gv) })
	select {
	case result := <-answer:
		resources, _ := result.Val.([]metav1.APIResource)
		if apierrors.IsNotFound(result.Err) {
			return discovered{nil, changes}, nil
		}
		return discovered{resources, changes}, result.Err
	case <-ctx.Done():
		return discovered{}, ctx.Err()
	}
}

// discover works for all waiting callers, so it does not use the context of one of them.
func (m *mappings) discover(gv schema.GroupVersion) ([]metav1.APIResource, error) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	m.metrics.count("discover")
	resources := &metav1.APIResourceList{}
	err := m.client.Get().AbsPath(groupPath(gv)...).Do(ctx).Into(resources)
	return resources.APIResources, err
}

// forget removes the mapping of a kind if it is still this one.
func (m *mappings) forget(gvk schema.GroupVersionKind, was *mapping) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKind[gvk] == was {
		delete(m.byKind, gvk)
		m.changes++
	}
}

// forgetKind removes the mappings of a kind in all versions, because its definition is gone.
func (m *mappings) forgetKind(gk schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	delete(m.definitions.seen, gk)
	maps.DeleteFunc(m.byKind, func(gvk schema.GroupVersionKind, _ *mapping) bool { return gvk.GroupKind() == gk })
}

// with calls do with the mapping of a kind. If the API server answers that the path does not exist, with removes the
// mapping, looks the kind up again, and calls do once more if the mapping has changed.
func (m *mappings) with(ctx context.Context, gvk schema.GroupVersionKind, do func(*mapping) error) error {
	served, err := m.of(ctx, gvk)
	if err != nil {
		return err
	}
	err = do(served)
	if !unserved(err) {
		return err
	}
	m.forget(gvk, served)
	now, mapErr := m.of(ctx, gvk)
	switch {
	case mapErr != nil:
		return mapErr
	case *now == *served:
		return &notServedYetError{err}
	}
	return do(now)
}

// notServedYetError means that discovery lists a kind but its path does not exist, as for a moment when a
// CustomResourceDefinition is created or deleted. It is unknown whether an object exists.
type notServedYetError struct{ error }

func (e *notServedYetError) Unwrap() error { return e.error }

// versions returns the served versions of a group, the preferred one first; none if the group does not exist.
func (m *mappings) versions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	m.metrics.count("discover")
	found := &metav1.APIGroup{}
	err := m.client.Get().AbsPath("/apis", group).Do(ctx).Into(found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking the target cluster for the versions of %s: %w", group, err)
	}
	versions := []string{found.PreferredVersion.Version}
	for _, version := range found.Versions {
		versions = append(versions, version.Version)
	}
	return versions, nil
}

// Served returns a version in which a kind is served: the given one if possible, otherwise another one, which has the
// same objects (MRD-13). The error is apimeta.NoKindMatchError if the kind is not served at all.
func (c *Client) Served(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	_, err := c.mappings.of(ctx, gvk)
	if !apimeta.IsNoMatchError(err) {
		return gvk, err
	}
	versions, versionsErr := c.mappings.versions(ctx, gvk.Group)
	if versionsErr != nil {
		return gvk, versionsErr
	}
	for _, version := range versions {
		other := gvk.GroupKind().WithVersion(version)
		if _, err := c.mappings.of(ctx, other); !apimeta.IsNoMatchError(err) {
			return other, err
		}
	}
	return gvk, err
}

// Scope returns the scope of a kind; unknown if the target does not serve it (MRD-9). Waiting ends with the context.
func (c *Client) Scope(ctx context.Context, gvk schema.GroupVersionKind) (plan.Scope, error) {
	served, err := c.mappings.of(ctx, gvk)
	switch {
	case apimeta.IsNoMatchError(err):
		return plan.ScopeUnknown, nil
	case err != nil:
		return plan.ScopeUnknown, err
	case served.namespaced:
		return plan.ScopeNamespaced, nil
	}
	return plan.ScopeCluster, nil
}

// Scales reports whether the target serves a kind with the subresource by which autoscalers scale its objects.
func (c *Client) Scales(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	served, err := c.mappings.of(ctx, gvk)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil && served.scales, err
}

// Resizes reports whether the target serves a kind with the subresource that changes the resources of running Pods.
func (c *Client) Resizes(ctx context.Context, gvk schema.GroupVersionKind) bool {
	served, err := c.mappings.of(ctx, gvk)
	return err == nil && served.resizes
}

// Gone reports whether the error means that the object does not exist: it was not found, or its kind is not served.
func Gone(err error) bool {
	var notYet *notServedYetError
	return !errors.As(err, &notYet) && (isNotFound(err) || apimeta.IsNoMatchError(err))
}
