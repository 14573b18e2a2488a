package dryrun

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

func metadata(o object) object {
	m, _ := o["metadata"].(object)
	return m
}

func text(o object, path ...string) string {
	value, _, _ := unstructured.NestedString(o, path...)
	return value
}

func versionOf(o object) string { return text(o, "metadata", "resourceVersion") }

func keyIn(c collection, o object) key {
	return key{c, text(o, "metadata", "namespace"), text(o, "metadata", "name")}
}

// isKept reports whether finalizers keep a deleted object: those of its metadata, or those in the spec of a
// Namespace.
func isKept(o object) bool {
	own, _, _ := unstructured.NestedSlice(o, "metadata", "finalizers")
	content, _, _ := unstructured.NestedSlice(o, "spec", "finalizers")
	return len(own)+len(content) > 0
}

// partialOf returns the answer to a request for metadata only.
func partialOf(o object) object {
	return object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
}

// shown returns an object in the form that a request requires.
func shown(q *request, o object) object {
	if q.partial {
		return partialOf(o)
	}
	o = maps.Clone(o)
	o["apiVersion"] = q.apiVersion()
	return o
}

// selection is the part of a collection that a request concerns.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (s *selection) has(o object) bool {
	if o == nil || s.namespace != "" && s.namespace != text(o, "metadata", "namespace") {
		return false
	}
	found, _, _ := unstructured.NestedStringMap(o, "metadata", "labels")
	if !s.labels.Matches(labels.Set(found)) {
		return false
	}
	set := fields.Set{}
	for _, r := range s.fields.Requirements() {
		set[r.Field] = text(o, strings.Split(r.Field, ".")...)
	}
	return s.fields.Matches(set)
}

// ownFields are the fields of metadata that only the API server writes.
var ownFields = []string{"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink"}

// changes returns the paths of the differences between two forms of an object, sorted.
func changes(before, after object) []string {
	var all []string
	walk("", before, after, &all)
	all = slices.DeleteFunc(all, func(path string) bool {
		return slices.ContainsFunc(ownFields, func(own string) bool { return path == "metadata."+own || strings.HasPrefix(path, "metadata."+own+"[") })
	})
	slices.Sort(all)
	return all
}

// walk adds the paths at which two values differ. An empty value counts as absent.
func walk(path string, before, after any, all *[]string) {
	if isNone(before) && isNone(after) || reflect.DeepEqual(before, after) {
		return
	}
	old, isMap := before.(object)
	fresh, isMapToo := after.(object)
	if (isMap || isNone(before)) && (isMapToo || isNone(after)) {
		keys := maps.Clone(old)
		if keys == nil {
			keys = object{}
		}
		maps.Copy(keys, fresh)
		for name := range keys {
			walk(join(path, name), old[name], fresh[name], all)
		}
		return
	}
	oldList, isList := before.([]any)
	freshList, isListToo := after.([]any)
	if isList && isListToo && len(oldList) == len(freshList) {
		for i := range oldList {
			walk(path+"["+strconv.Itoa(i)+"]", oldList[i], freshList[i], all)
		}
		return
	}
	*all = append(*all, path)
}

func isNone(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case object:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// join appends a key to a path; a key with dots, such as that of a label, is quoted, so that it is not mistaken for
// several.
func join(path, name string) string {
	if strings.ContainsAny(name, "./[]") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}
