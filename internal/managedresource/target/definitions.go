package target

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	typed "github.com/espalier-project/espalier/internal/managedresource/schema"
)

// definitionsFor is the time for which the defaults of a kind are cached. At a start or in a full run, all objects of
// a kind are compared within seconds; a definition that changes in between counts from the next run on.
const definitionsFor = 10 * time.Second

var definitionKind = customResourceDefinitions.WithVersion("v1")

// definitions caches the defaults of CustomResourceDefinitions. Concurrent callers share one read.
//
// Invariant: the defaults are from a definition that was read less than definitionsFor ago, and after the last
// observed change. A definition that could not be read has no defaults.
//
// It shares the lock of the mappings, which become invalid with the same definitions.
type definitions struct {
	byKind map[schema.GroupVersionKind]*definition
	// seen is the last observed version of the definition of each kind, as long as the definition exists.
	seen map[schema.GroupKind]definitionVersion
}

type definitionVersion struct {
	uid        types.UID
	generation int64
}

type definition struct {
	done     chan struct{}
	defaults merge.CustomDefaults
	read     time.Time
}

// FilledIn reports whether live differs from merged only by defaults of the CustomResourceDefinition of its kind, so
// that a write would change nothing (MRB-8).
func (c *Client) FilledIn(ctx context.Context, live, merged *unstructured.Unstructured) bool {
	gvk := live.GroupVersionKind()
	if !typed.IsCustom(gvk.Group) {
		return false
	}
	filled := merged.DeepCopy()
	c.defaultsOf(ctx, gvk).Fill(filled)
	return merge.Equal(live, filled)
}

// definitionTakes is the longest time for which API servers use the former definition of a kind after a change, which
// each of them gets by a watch.
const definitionTakes = 10 * time.Second

// Defines handles an object that was read or written. If it is a new version of a CustomResourceDefinition, objects
// of its kind may keep fields that were dropped before: they are written again now, and once more when every API
// server uses the new definition.
func (w *Watches) Defines(object *unstructured.Unstructured) {
	if object == nil || object.GroupVersionKind().GroupKind() != customResourceDefinitions {
		return
	}
	kind := kindDefinedBy(object)
	if !w.client.mappings.renewed(kind, definitionVersion{object.GetUID(), object.GetGeneration()}) {
		return
	}
	w.tracker.RetryKind(kind)
	w.after(definitionTakes, func() { w.tracker.RetryKind(kind) })
}

// renewed records the version of a definition, and reports whether it is new.
func (m *mappings) renewed(kind schema.GroupKind, form definitionVersion) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &m.definitions
	if d.seen[kind] == form {
		return false
	}
	d.seen[kind] = form
	maps.DeleteFunc(d.byKind, func(gvk schema.GroupVersionKind, _ *definition) bool { return gvk.GroupKind() == kind })
	return true
}

func (c *Client) defaultsOf(ctx context.Context, gvk schema.GroupVersionKind) merge.CustomDefaults {
	c.mappings.mu.Lock()
	d := c.mappings.definitions.byKind[gvk]
	if d == nil || !d.read.IsZero() && time.Since(d.read) >= definitionsFor {
		d = &definition{done: make(chan struct{})}
		c.mappings.definitions.byKind[gvk] = d
		go c.readDefinition(gvk, d)
	}
	c.mappings.mu.Unlock()
	select {
	case <-d.done:
		return d.defaults
	case <-ctx.Done():
		return merge.CustomDefaults{}
	}
}

// readDefinition works for all waiting callers, so it does not use the context of one of them.
func (c *Client) readDefinition(gvk schema.GroupVersionKind, d *definition) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	var defaults merge.CustomDefaults
	if served, err := c.mappings.of(ctx, gvk); err == nil {
		if object, err := c.Get(ctx, definitionKind, "", served.resource.Resource+"."+gvk.Group); err == nil {
			defaults = merge.NewCustomDefaults(object, gvk.Version)
		}
	}
	c.mappings.mu.Lock()
	defer c.mappings.mu.Unlock()
	d.defaults, d.read = defaults, time.Now()
	close(d.done)
}
