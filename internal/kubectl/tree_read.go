package kubectl

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// treeReader reads ManagedResources with their objects.
type treeReader struct {
	*clusters
	// name is the wanted ManagedResource, "" for all that the selector selects; within is its namespace, "" for all.
	name, selector, within string
}

// fewObjects is the number of objects of a kind up to which each is read on its own: a list by label returns the
// objects of all ManagedResources.
const fewObjects = 4

func (g *treeReader) options() metav1.ListOptions {
	if g.name == "" {
		return metav1.ListOptions{LabelSelector: g.selector}
	}
	return metav1.ListOptions{FieldSelector: "metadata.name=" + g.name}
}

// read reads everything once.
func (g *treeReader) read(ctx context.Context) ([]inspect.Branch, error) {
	objects, err := g.source.list(ctx, managedResources, g.within, g.options())
	if err != nil {
		return nil, fmt.Errorf("listing ManagedResources: %w", err)
	}
	all, err := typedAll[resourcesv1alpha1.ManagedResource](objects)
	if err != nil {
		return nil, err
	}
	if g.name != "" && len(all) == 0 {
		return nil, fmt.Errorf("ManagedResource %s/%s does not exist", g.within, g.name)
	}
	return g.branches(ctx, all)
}

// branches reads the objects of ManagedResources, and the Events about the ManagedResources.
func (g *treeReader) branches(ctx context.Context, all []*resourcesv1alpha1.ManagedResource) ([]inspect.Branch, error) {
	f := &inspect.TreeFacts{Now: time.Now(), ManagedResources: all, Live: map[objects.ID]*unstructured.Unstructured{}, Unread: map[objects.ID]error{}}
	selector := ownWarnings
	if g.name != "" {
		selector += ",involvedObject.name=" + g.name
	}
	events, err := g.source.events(ctx, g.within, selector)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing Events: %w", err)
	}
	f.Events = events
	g.readObjects(ctx, f)
	return f.Branches(), ctx.Err()
}

// bunch has the objects of a kind that have to be read.
type bunch struct {
	gvk  schema.GroupVersionKind
	refs []*resourcesv1alpha1.ObjectReference
}

func bunches(all []*resourcesv1alpha1.ManagedResource) []*bunch {
	byKind := map[schema.GroupVersionKind]*bunch{}
	var ordered []*bunch
	for _, mr := range all {
		for i := range mr.Status.Resources {
			ref := &mr.Status.Resources[i]
			b := byKind[ref.GroupVersionKind()]
			if b == nil {
				b = &bunch{gvk: ref.GroupVersionKind()}
				byKind[b.gvk], ordered = b, append(ordered, b)
			}
			b.refs = append(b.refs, ref)
		}
	}
	return ordered
}

// namespace returns the namespace that all objects of the bunch share, "" if they have several.
func (b *bunch) namespace() string {
	first := b.refs[0].Namespace
	if slices.ContainsFunc(b.refs, func(ref *resourcesv1alpha1.ObjectReference) bool { return ref.Namespace != first }) {
		return ""
	}
	return first
}

// unread records for all objects of the bunch that they could not be read.
func (b *bunch) unread(took func(objects.ID, *unstructured.Unstructured, error), err error) {
	for _, ref := range b.refs {
		took(objects.IDOfEntry(ref), nil, err)
	}
}

// readObjects reads the objects of all inventories: many of a kind by one list, few of them one by one.
func (g *treeReader) readObjects(ctx context.Context, f *inspect.TreeFacts) {
	var mu sync.Mutex
	took := func(key objects.ID, live *unstructured.Unstructured, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			f.Unread[key] = err
		case err == nil && live != nil:
			f.Live[key] = live
		}
	}
	all := bunches(f.ManagedResources)
	parallel(fewObjects, all, func(b *bunch) { g.readBunch(ctx, b, took) })
}

func (g *treeReader) readBunch(ctx context.Context, b *bunch, took func(objects.ID, *unstructured.Unstructured, error)) {
	k, err := g.target.served(ctx, b.gvk)
	if err == nil && k == nil {
		err = fmt.Errorf("the target does not serve %s", b.gvk)
	}
	if err != nil {
		b.unread(took, err)
		return
	}
	listed := map[objects.ID]*unstructured.Unstructured{}
	if len(b.refs) > fewObjects {
		if listed, err = g.listBunch(ctx, k, b); err != nil && !apierrors.IsForbidden(err) {
			b.unread(took, err)
			return
		}
	}
	var rest []*resourcesv1alpha1.ObjectReference
	for _, ref := range b.refs {
		key := objects.IDOfEntry(ref)
		if live := listed[key]; live != nil {
			took(key, live, nil)
		} else {
			rest = append(rest, ref) // It may exist without the label.
		}
	}
	parallel(fewObjects, rest, func(ref *resourcesv1alpha1.ObjectReference) {
		live, err := g.target.get(ctx, k.Resource, k.within(ref.Namespace), ref.Name)
		took(objects.IDOfEntry(ref), live, err)
	})
}

// managed selects the objects that have the label of managed ones, whatever its value.
const managed = resourcesv1alpha1.LabelManagedBy

// listBunch lists the managed objects of a kind, only their metadata if that is all that is checked.
func (g *treeReader) listBunch(ctx context.Context, k *kind, b *bunch) (map[objects.ID]*unstructured.Unstructured, error) {
	options := metav1.ListOptions{LabelSelector: managed}
	list := g.target.list
	if !inspect.NeedsWhole(b.refs[0]) {
		list = g.target.listMetadata
	}
	found, err := list(ctx, k.Resource, b.namespace(), options)
	listed := make(map[objects.ID]*unstructured.Unstructured, len(found))
	for i := range found {
		found[i].SetGroupVersionKind(b.gvk)
		listed[objects.IDOf(&found[i])] = &found[i]
	}
	return listed, err
}

// listMetadata reads the metadata of all pages of a list.
func (r *reader) listMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.metadata.Resource(resource).Namespace(namespace).List(ctx, options)
	})
	err := pages.EachListItem(ctx, options, func(object runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		all = append(all, unstructured.Unstructured{Object: content})
		return err
	})
	return all, err
}
