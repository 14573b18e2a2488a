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

// Writer is the writer of an object or a field of it, according to managed fields.
type Writer struct {
	Manager string `json:"manager"`
	// Operation is Update or Apply; Subresource is set for writes of one.
	Operation   string       `json:"operation,omitempty"`
	Subresource string       `json:"subresource,omitempty"`
	Time        *metav1.Time `json:"time,omitempty"`
	// Ours is true for resource-manager, by its name or because it wrote the origin annotation.
	Ours bool `json:"ours,omitempty"`

	fields map[string]json.RawMessage
}

// ownNames are those by which API servers note what resource-manager writes: the names of the executable here, and of
// the reference.
var ownNames = []string{"resource-manager", "gardener-resource-manager"}

// WritersOf are those of an object, the latest first.
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

// wrote reports whether a writer has a field. The steps of lists are names or places in brackets, as in paths of
// differences.
func (w *Writer) wrote(steps ...string) bool {
	fields := w.fields
	for _, step := range steps {
		inner, found := fieldAt(fields, step)
		if !found {
			return false
		}
		if len(inner) == 0 {
			return true // It has all that is below.
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

// attribute says of each difference who wrote the live value: the latest writer that has the field.
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

// writerOf is the latest writer that has a field, nil if managed fields report none.
func writerOf(object metav1.Object, steps ...string) *Writer {
	writers := WritersOf(object)
	if at := slices.IndexFunc(writers, func(w Writer) bool { return w.wrote(steps...) }); at >= 0 {
		return &writers[at]
	}
	return nil
}
