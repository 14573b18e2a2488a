package targetcluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/apply"
	typed "github.com/espalier-project/espalier/internal/apply/schema"
)

// definitionsFor is how long the defaults of a kind are used again. All objects of a kind are compared within seconds, at a start
// or in a full pass, and a definition that is changed in between counts from the next one on.
const definitionsFor = 10 * time.Second

var definitionKind = customResourceDefinitions.WithVersion("v1")

// definitions reads what CustomResourceDefinitions fill in, once for all that want to know at the same time.
//
// Invariant: what it says is of a definition that was read less than definitionsFor ago. What could not be read fills in nothing.
type definitions struct {
	mu     sync.Mutex
	byKind map[schema.GroupVersionKind]*definition
}

type definition struct {
	done     chan struct{}
	defaults apply.CustomDefaults
	read     time.Time
}

// FilledIn says whether live differs from what is to be written only by what the CustomResourceDefinition of its kind fills in, so
// that a write would change nothing (MRB-8).
func (c *Client) FilledIn(ctx context.Context, live, merged *unstructured.Unstructured) bool {
	gvk := live.GroupVersionKind()
	if !typed.IsCustom(gvk.Group) {
		return false
	}
	filled := merged.DeepCopy()
	c.defaultsOf(ctx, gvk).Fill(filled)
	return apply.Equal(live, filled)
}

func (c *Client) defaultsOf(ctx context.Context, gvk schema.GroupVersionKind) apply.CustomDefaults {
	c.definitions.mu.Lock()
	d := c.definitions.byKind[gvk]
	if d == nil || !d.read.IsZero() && time.Since(d.read) >= definitionsFor {
		d = &definition{done: make(chan struct{})}
		if c.definitions.byKind == nil {
			c.definitions.byKind = map[schema.GroupVersionKind]*definition{}
		}
		c.definitions.byKind[gvk] = d
		go c.readDefinition(gvk, d)
	}
	c.definitions.mu.Unlock()
	select {
	case <-d.done:
		return d.defaults
	case <-ctx.Done():
		return apply.CustomDefaults{}
	}
}

// readDefinition works for all that wait, so that it ends with none of their contexts.
func (c *Client) readDefinition(gvk schema.GroupVersionKind, d *definition) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	var defaults apply.CustomDefaults
	if served, err := c.mappings.of(ctx, gvk); err == nil {
		if object, err := c.Get(ctx, definitionKind, "", served.resource.Resource+"."+gvk.Group); err == nil {
			defaults = apply.NewCustomDefaults(object, gvk.Version)
		}
	}
	c.definitions.mu.Lock()
	defer c.definitions.mu.Unlock()
	d.defaults, d.read = defaults, time.Now()
	close(d.done)
}
