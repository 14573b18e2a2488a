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

// discoveryTimeout limits one question for the kinds of a group and version: the API server answers from memory, and
// an aggregated one that does not answer must not hold what others need.
const discoveryTimeout = 10 * time.Second

// mapping is the place where the API server serves the objects of a kind. It is immutable: a kind that is served anew
// gets another one.
type mapping struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// unreadable is true if discovery says that the API has no get, as that of a SubjectAccessReview: its objects are
	// answers, and are never stored.
	unreadable bool
	// scales and resizes are true if discovery lists the subresource.
	scales, resizes bool
}

// isUnreadable reports whether an API has no get. An API that does not say which verbs it has can be read.
func isUnreadable(verbs metav1.Verbs) bool { return len(verbs) > 0 && !slices.Contains(verbs, "get") }

// in returns the namespace of requests for objects in a namespace: none if the kind is cluster-scoped.
func (m *mapping) in(namespace string) string {
	if m.namespaced {
		return namespace
	}
	return ""
}

// readable returns an error if no object of the kind is there to be read or deleted (MRX-19).
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

// CannotRead reports whether discovery says that the API of a kind cannot read its objects.
func (c *Client) CannotRead(ctx context.Context, gvk schema.GroupVersionKind) bool {
	served, err := c.mappings.of(ctx, gvk)
	return err == nil && served.unreadable
}

// mappings remembers the mapping of each kind, as discovery reported it.
//
// Invariant: a mapping ends with its source. An answer that the API server does not know its path ends it at once, and
// so does a change of the CustomResourceDefinition that is seen, also if that comes before the answer of discovery; a
// kind that is not served is never remembered.
type mappings struct {
	metrics *Metrics
	client  rest.Interface

	// discoveries share the requests that are under way, so that many objects of a kind send one.
	discoveries singleflight.Group

	mu     sync.Mutex
	byKind map[schema.GroupVersionKind]*mapping
	// changes counts how often a kind was seen to change.
	changes     int
	definitions definitions
}

// discovered has the kinds of a group and version. They are outdated if any kind was seen to change after
// the request was sent: the answer may be from before.
type discovered struct {
	resources []metav1.APIResource
	changes   int
}

func newMappings(client rest.Interface, metrics *Metrics) *mappings {
	return &mappings{client: client, metrics: metrics, byKind: map[schema.GroupVersionKind]*mapping{},
		definitions: definitions{map[schema.GroupVersionKind]*definition{}, map[schema.GroupKind]definitionVersion{}}}
}

// outdatedAnswers limits the requests to discovery for one kind, which are repeated if the kind was seen to change
// meanwhile.
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

// remember takes an answer of discovery, unless it is outdated, and returns the mapping of a kind, nil if the kind is
// not served.
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

// discoverOnce requests the kinds of a group and version, once for all callers at the same time. A group that does not
// exist has none.
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

// discover works for all waiting callers, so that it ends with none of their contexts.
func (m *mappings) discover(gv schema.GroupVersion) ([]metav1.APIResource, error) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	m.metrics.count("discover")
	resources := &metav1.APIResourceList{}
	err := m.client.Get().AbsPath(groupPath(gv)...).Do(ctx).Into(resources)
	return resources.APIResources, err
}

// forget ends the mapping of a kind if it is still this one.
func (m *mappings) forget(gvk schema.GroupVersionKind, was *mapping) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKind[gvk] == was {
		delete(m.byKind, gvk)
		m.changes++
	}
}

// forgetKind ends the mappings of a kind in all versions, whose definition is gone.
func (m *mappings) forgetKind(gk schema.GroupKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	delete(m.definitions.seen, gk)
	maps.DeleteFunc(m.byKind, func(gvk schema.GroupVersionKind, _ *mapping) bool { return gvk.GroupKind() == gk })
}

// with calls do with the mapping of a kind. If the API server answers that the path does not exist, the mapping has
// ended: with looks the kind up anew, and calls do once more if the kind is served elsewhere now.
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

// notServedYetError means that discovery names a kind and the API server has nothing at its path, as for a moment when
// a CustomResourceDefinition comes or goes. It is unknown whether an object exists.
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

// Served returns the version in which a kind is served: the given one, if it is, else another one, whose objects are
// the same (MRD-13); apimeta.NoKindMatchError if the kind is not served at all.
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

// Gone reports whether the error means that the object can't be there: not found, or its kind is not served.
func Gone(err error) bool {
	var notYet *notServedYetError
	return !errors.As(err, &notYet) && (isNotFound(err) || apimeta.IsNoMatchError(err))
}
