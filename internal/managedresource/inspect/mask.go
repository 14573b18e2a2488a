package inspect

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const masked = "***"

// mask hides the values of Secrets in an object before and after a write, also inside lists, templates and strings
// (CLI-11). A field of a Secret stays visible only if its name and type cannot hold a value. Two different values
// stay different.
func mask(live, wanted *unstructured.Unstructured) {
	var forms [2]any
	for i, form := range []*unstructured.Unstructured{live, wanted} {
		if form != nil {
			forms[i] = form.Object
		}
	}
	before, after := hide(forms[0], forms[1], false)
	if live != nil {
		live.Object, _ = before.(map[string]any)
	}
	if wanted != nil {
		wanted.Object, _ = after.(map[string]any)
	}
}

// Masked returns a copy of an object with the values of Secrets masked.
func Masked(object *unstructured.Unstructured) *unstructured.Unstructured {
	hidden := object.DeepCopy()
	mask(nil, hidden)
	return hidden
}

// hide masks Secrets in two corresponding values. asItem is true for items of a SecretList, which may have no kind.
func hide(before, after any, asItem bool) (hiddenBefore, hiddenAfter any) {
	switch {
	case isSecret(before, asItem), isSecret(after, asItem):
		return hideSecret(before, after)
	case describesSecret(before), describesSecret(after):
		return hideValue(before, after)
	case before != nil && after != nil && reflect.TypeOf(before) != reflect.TypeOf(after):
		hiddenBefore, _ = hide(before, nil, asItem)
		_, hiddenAfter = hide(nil, after, asItem)
		return hiddenBefore, hiddenAfter
	case isList(before), isList(after):
		return hideItems(before, after, asItem)
	}
	ofSecrets := isSecretList(before) || isSecretList(after)
	return eachField(before, after, func(name string, before, after any) (any, any) {
		return hide(before, after, ofSecrets && name == "items")
	})
}

func hideItems(before, after any, asItem bool) (hiddenBefore, hiddenAfter any) {
	b, _ := before.([]any)
	a, _ := after.([]any)
	b, a = slices.Clone(b), slices.Clone(a)
	at := func(items []any, i int) any {
		if i < len(items) {
			return items[i]
		}
		return nil
	}
	for i := range max(len(b), len(a)) {
		x, y := hide(at(b, i), at(a, i), asItem)
		if i < len(b) {
			b[i] = x
		}
		if i < len(a) {
			a[i] = y
		}
	}
	if hiddenBefore = before; isList(before) {
		hiddenBefore = b
	}
	if hiddenAfter = after; isList(after) {
		hiddenAfter = a
	}
	return hiddenBefore, hiddenAfter
}

// eachField replaces the fields of two mappings; a value that is no mapping stays.
func eachField(before, after any,
	replace func(name string, before, after any) (any, any)) (replacedBefore, replacedAfter any) {
	b, inBefore := before.(map[string]any)
	a, inAfter := after.(map[string]any)
	newB, newA := maps.Clone(b), maps.Clone(a)
	for _, name := range fieldNames(b, a) {
		x, y := replace(name, b[name], a[name])
		if _, found := b[name]; found {
			newB[name] = x
		}
		if _, found := a[name]; found {
			newA[name] = y
		}
	}
	if replacedBefore = before; inBefore {
		replacedBefore = newB
	}
	if replacedAfter = after; inAfter {
		replacedAfter = newA
	}
	return replacedBefore, replacedAfter
}

// shape reports whether a value has a type that cannot hold secret values.
type shape func(value any) bool

func isText(value any) bool { _, is := value.(string); return is }
func isBool(value any) bool { _, is := value.(bool); return is }
func isList(value any) bool { _, is := value.([]any); return is }

func isScalar(value any) bool {
	_, isMap := value.(map[string]any)
	return !isMap && !isList(value)
}

// isTexts reports whether a value is a mapping of strings, so that its keys are only names.
func isTexts(value any) bool {
	entries, is := value.(map[string]any)
	for _, entry := range entries {
		is = is && isText(entry)
	}
	return is
}

// mostAnnotation is the length from which an annotation may be a copy of the object, as written by tools that apply
// manifests.
const mostAnnotation = 256

// isRemark reports whether an annotation is too short and too simple to be a copy of the object.
func isRemark(value any) bool {
	text, is := value.(string)
	return is && len(text) < mostAnnotation && !strings.ContainsAny(text, "{[") && !describesSecret(text)
}

// These fields of a Secret and of its metadata hold no secret values.
var (
	shownFields   = map[string]shape{"apiVersion": isText, "kind": isText, "type": isText, "immutable": isBool}
	shownMetadata = map[string]shape{
		"name": isScalar, "generateName": isScalar, "namespace": isScalar, "uid": isScalar, "resourceVersion": isScalar,
		"generation":        isScalar,
		"creationTimestamp": isScalar, "deletionTimestamp": isScalar, "deletionGracePeriodSeconds": isScalar,
		"labels": isTexts, "ownerReferences": isList, "finalizers": isList,
	}
)

func hideSecret(before, after any) (hiddenBefore, hiddenAfter any) {
	isObject := func(value any) bool { return reflect.TypeOf(value) == reflect.TypeFor[map[string]any]() }
	if !both(before, after, isObject) {
		return hideValue(before, after)
	}
	return eachField(before, after, func(name string, before, after any) (any, any) {
		switch {
		case shownFields[name] != nil && both(before, after, shownFields[name]):
			return before, after
		case name == "metadata" && both(before, after, isObject):
			return eachField(before, after, hideMetadata)
		case (name == "data" || name == "stringData") && both(before, after, isTexts):
			return eachField(before, after, func(_ string, before, after any) (any, any) { return hideValue(before, after) })
		}
		return hideValue(before, after)
	})
}

func hideMetadata(name string, before, after any) (hiddenBefore, hiddenAfter any) {
	switch {
	case shownMetadata[name] != nil && both(before, after, shownMetadata[name]):
		return before, after
	case name == "annotations" && both(before, after, isTexts):
		return eachField(before, after, func(name string, before, after any) (any, any) {
			if name != corev1.LastAppliedConfigAnnotation && both(before, after, isRemark) {
				return before, after
			}
			return hideValue(before, after)
		})
	}
	return hideValue(before, after)
}

// both reports whether both values, if present, have a shape.
func both(before, after any, is shape) bool {
	return (before == nil || is(before)) && (after == nil || is(after))
}

func hideValue(before, after any) (hiddenBefore, hiddenAfter any) {
	switch {
	case before == nil && after == nil:
		return nil, nil
	case before == nil:
		return nil, masked
	case after == nil:
		return masked, nil
	case same(before, after):
		return masked, masked
	}
	return masked + " (before)", masked + " (after)"
}

// referenceFields are the fields of references to Secrets.
var referenceFields = []string{
	"apiVersion", "apiGroup", "group", "kind", "namespace", "name", "uid", "resourceVersion", "key", "valuesKey",
	"targetPath", "fieldPath", "optional", "controller", "blockOwnerDeletion",
}

// isSecret reports whether a value is a Secret of any group, and not a reference to one.
func isSecret(value any, asItem bool) bool {
	fields, is := value.(map[string]any)
	if !is || asItem {
		return is
	}
	kind, _ := fields["kind"].(string)
	named := strings.EqualFold(kind, "Secret") || strings.EqualFold(kind, "InternalSecret")
	for name, field := range fields {
		if strings.EqualFold(name, "stringData") || named && (!slices.Contains(referenceFields, name) || !isScalar(field)) {
			return true
		}
	}
	return false
}

func isSecretList(value any) bool {
	fields, _ := value.(map[string]any)
	kind, _ := fields["kind"].(string)
	return strings.EqualFold(kind, "SecretList") || strings.EqualFold(kind, "InternalSecretList")
}

// manifestOfSecret matches the kind of a Secret in YAML and JSON, also in JSON that is quoted in JSON.
var manifestOfSecret = regexp.MustCompile(`(?i)\bkind\\*["']?\s*:\s*\\*["']?(internal)?secret(list)?\b`)

func describesSecret(value any) bool {
	text, _ := value.(string)
	return manifestOfSecret.MatchString(text)
}
