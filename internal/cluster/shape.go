package cluster

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/feature"
)

// shape is a form of a kind: the cache keeps one copy of each shape for all readers.
type shape struct {
	kind schema.GroupVersionKind
	form feature.Form
}

func of(name feature.Cluster, reads []feature.Read) []feature.Read {
	var its []feature.Read
	for _, read := range reads {
		if read.Cluster == name && (read.Form == feature.Whole || read.Form == feature.Metadata) {
			its = append(its, read)
		}
	}
	return its
}

// CacheOptions returns the options of a cache that keeps the declared reads of a cluster, and refuses all others.
//
// Objects of a kind that several features read in the same form are kept once, with all that these features need: a
// selector or namespace applies only if all of them have the same, and a field is stripped only if all of them strip
// it. So a feature that reads with a selector must expect objects that do not match it.
func CacheOptions(name feature.Cluster, o Options) (cache.Options, error) {
	options := cache.Options{
		Scheme: o.Scheme, SyncPeriod: o.Resync, ReaderFailOnMissingInformer: true, NewInformer: informers(o.Restored),
		// No reader changes the objects of the cache, so no copies are needed.
		DefaultUnsafeDisableDeepCopy: ptr.To(true), DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{},
	}
	if len(o.Namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.Namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	byShape, order := map[shape][]feature.Read{}, []shape{}
	for _, read := range of(name, o.Reads) {
		key := shape{read.Kind, read.Form}
		if _, found := byShape[key]; !found {
			order = append(order, key)
		}
		byShape[key] = append(byShape[key], read)
	}
	for _, key := range order {
		object, err := objectOf(o.Scheme, &byShape[key][0])
		if err != nil {
			return cache.Options{}, err
		}
		by, err := join(byShape[key])
		if err != nil {
			return cache.Options{}, err
		}
		options.ByObject[object] = by
	}
	return options, nil
}

// join returns the shared cache options of several readers of a kind.
func join(reads []feature.Read) (cache.ByObject, error) {
	first, by := reads[0], cache.ByObject{}
	sameLabels, sameFields, sameNamespace := true, true, true
	for _, read := range reads[1:] {
		sameLabels = sameLabels && read.Selector == first.Selector
		sameFields = sameFields && read.FieldSelector == first.FieldSelector
		sameNamespace = sameNamespace && read.Namespace == first.Namespace
	}
	var err error
	if first.Selector != "" && sameLabels {
		if by.Label, err = labels.Parse(first.Selector); err != nil {
			return by, fmt.Errorf("%s: %w", first.Kind, err)
		}
	}
	if first.FieldSelector != "" && sameFields {
		if by.Field, err = fields.ParseSelector(first.FieldSelector); err != nil {
			return by, fmt.Errorf("%s: %w", first.Kind, err)
		}
	}
	if first.Namespace != "" && sameNamespace {
		by.Namespaces = map[string]cache.Config{first.Namespace: {}}
	}
	by.Transform = stripping(reads)
	return by, nil
}

// stripping returns the transformation that removes managed fields, and then the fields that no reader needs; nil if
// one reader needs all other fields. A transformation that several readers share is applied once.
func stripping(reads []feature.Read) toolscache.TransformFunc {
	var strips []feature.Strip
	for _, read := range reads {
		switch {
		case read.Strip == nil:
			return nil
		case !slices.Contains(strips, read.Strip):
			strips = append(strips, read.Strip)
		}
	}
	managed := cache.TransformStripManagedFields()
	return func(object any) (any, error) {
		object, err := managed(object)
		if err != nil {
			return nil, err
		}
		whole, isObject := object.(runtime.Object)
		if len(strips) == 1 || !isObject {
			return strips[0].Strip(object)
		}
		kept, err := strips[0].Strip(whole.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		for _, strip := range strips[1:] {
			other, err := strip.Strip(whole.DeepCopyObject())
			if err != nil {
				return nil, err
			}
			unite(reflect.ValueOf(kept), reflect.ValueOf(other), reflect.ValueOf(whole))
		}
		return kept, nil
	}
}

// objectOf returns the object that stands for a kind and its form in the cache.
func objectOf(scheme *runtime.Scheme, read *feature.Read) (client.Object, error) {
	switch {
	case read.Kind.Empty():
		return nil, errNoKind
	case read.Form == feature.Metadata:
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(read.Kind)
		return object, nil
	case !scheme.Recognizes(read.Kind):
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(read.Kind)
		return object, nil
	}
	object, err := scheme.New(read.Kind)
	if err != nil {
		return nil, err
	}
	typed, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s is no kind of object", read.Kind)
	}
	return typed, nil
}
