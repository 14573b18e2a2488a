package inspect

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// Writer is the writer of an object or of one of its fields, according to managed fields.
type Writer struct {
	Manager string `json:"manager"`
	// Operation is Update or Apply; Subresource is set for writes of a subresource.
	Operation   string       `json:"operation,omitempty"`
	Subresource string       `json:"subresource,omitempty"`
	Time        *metav1.Time `json:"time,omitempty"`
	// Ours is true for resource-manager, which is found by its name or because it wrote the origin annotation.
	Ours bool `json:"ours,omitempty"`

	fields map[string]json.RawMessage
}

// ownNames are the field managers of resource-manager: of this executable, and of the reference's.
var ownNames = []string{"resource-manager", "gardener-resource-manager"}

// WritersOf returns the writers of an object, the latest first.
func WritersOf(object metav1.Object) []Writer {
	if object == nil {
		return nil
	}
	var writers []Writer
	for _, entry := range object.GetManagedFields() {
		writer := Writer{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource,
			Time: entry.Time, fields: fieldsOf(entry.FieldsV1)}
		writer.Ours = slices.Contains(ownNames, writer.Manager)
		writers = append(writers, writer)
	}
	if !slices.ContainsFunc(writers, func(w Writer) bool { return w.Ours }) {
		for i := range writers {
			writers[i].Ours = writers[i].wrote("metadata", "annotations", resourcesv1alpha1.AnnotationOrigin)
		}
	}
	slices.SortStableFunc(writers, func(a, b Writer) int { return b.at().Compare(a.at()) })
	return writers
}

func (w *Writer) at() time.Time {
	if w.Time == nil {
		return time.Time{}
	}
	return w.Time.Time
}

func fieldsOf(fields *metav1.FieldsV1) map[string]json.RawMessage {
	if fields == nil {
		return nil
	}
	var decoded map[string]json.RawMessage
	if json.Unmarshal(fields.GetRawBytes(), &decoded) != nil {
		return nil
	}
	return decoded
}

// wrote reports whether a writer owns a field. In steps, items of lists are names or indexes in brackets, as in the
// paths of differences.
func (w *Writer) wrote(steps ...string) bool {
	fields := w.fields
	for _, step := range steps {
		inner, found := fieldAt(fields, step)
		if !found {
			return false
		}
		if len(inner) == 0 {
			return true // It owns everything below.
		}
		fields = inner
	}
	return true
}

// fieldAt returns the managed fields below a step.
func fieldAt(fields map[string]json.RawMessage, step string) (map[string]json.RawMessage, bool) {
	if inner, found := fields["f:"+step]; found {
		return decodedFields(inner), true
	}
	name, isItem := strings.CutPrefix(strings.TrimSuffix(step, "]"), "[")
	if !isItem {
		return nil, false
	}
	for key, inner := range fields {
		if place, found := strings.CutPrefix(key, "i:"); found && place == name {
			return decodedFields(inner), true
		}
		var keys map[string]any
		if text, found := strings.CutPrefix(key, "k:"); found && json.Unmarshal([]byte(text), &keys) == nil &&
			keys["name"] == name {
			return decodedFields(inner), true
		}
	}
	return nil, false
}

func decodedFields(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	delete(fields, ".")
	return fields
}

// attribute sets the writer of each difference: the latest writer that owns the field.
func attribute(all []Difference, live *unstructured.Unstructured) {
	writers := WritersOf(live)
	for i := range all {
		d := &all[i]
		at := slices.IndexFunc(writers,
			func(w Writer) bool { return len(d.steps) > 0 && d.Live != "" && w.wrote(d.steps...) })
		if at >= 0 {
			d.By = &writers[at]
		}
	}
}

// writerOf returns the latest writer that owns a field, nil if the managed fields have none.
func writerOf(object metav1.Object, steps ...string) *Writer {
	writers := WritersOf(object)
	if at := slices.IndexFunc(writers, func(w Writer) bool { return w.wrote(steps...) }); at >= 0 {
		return &writers[at]
	}
	return nil
}
