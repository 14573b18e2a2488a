package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// kinds are the types of the kinds that were asked for: the parts of Kubernetes that are in use cost memory, the others
// don't.
type kinds struct {
	found sync.Map // GroupVersionKind → *Type

	mu sync.Mutex
	// built holds every type once, also while it is being built, so that types may contain themselves.
	built map[reflect.Type]*Type
	// foreign is the type of all kinds that are not Kubernetes' own.
	foreign *Type
}

var known = &kinds{built: map[reflect.Type]*Type{}}

// subsets is the type of the list in Endpoints that the API server packs anew.
var subsets = reflect.TypeOf(corev1.Endpoints{}.Subsets) //nolint:staticcheck // Deprecated, and served all the same.

// Of returns the type of a kind, and whether it is one of Kubernetes' own.
func Of(kind runtimeschema.GroupVersionKind) (*Type, bool) {
	if t, found := known.found.Load(kind); found {
		return t.(*Type), true
	}
	goType, found := goTypeOf(kind)
	known.mu.Lock()
	defer known.mu.Unlock()
	if !found {
		if known.foreign == nil {
			known.foreign = foreignType(known.buildLocked(reflect.TypeFor[metav1.ObjectMeta]()))
		}
		return known.foreign, false
	}
	t := known.buildLocked(goType)
	known.found.Store(kind, t)
	return t, true
}

// IsCustom reports whether the kinds of a group are custom resources, or served by another API server: the group has a
// dot and is none of Kubernetes' own. Its end is no evidence: those of the Gateway API, vertical autoscalers and
// snapshots end with k8s.io, too.
func IsCustom(group string) bool { return strings.Contains(group, ".") && !ownGroups()[group] }

var ownGroups = sync.OnceValue(func() map[string]bool {
	groups := map[string]bool{apiextensionsv1.GroupName: true, apiServiceKind.Group: true}
	for kind := range scheme.Scheme.AllKnownTypes() {
		if _, own := goTypeOf(kind); own {
			groups[kind.Group] = true
		}
	}
	return groups
})

var apiServiceKind = runtimeschema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// goTypeOf looks the kind up among the types of Kubernetes itself. A scheme may hold others, too: they don't count, as
// their defaults are unknown here.
func goTypeOf(kind runtimeschema.GroupVersionKind) (reflect.Type, bool) {
	switch kind {
	case apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"):
		return reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), true
	case apiServiceKind:
		return reflect.TypeFor[apiService](), true
	}
	t, found := scheme.Scheme.AllKnownTypes()[kind]
	return t, found && strings.HasPrefix(t.PkgPath(), "k8s.io/api/")
}

// foreignType knows the metadata alone, which is the same for all kinds.
func foreignType(meta *Type) *Type {
	text := &Type{Kind: String}
	return &Type{Kind: Struct, fields: map[string]*Field{"apiVersion": {Type: text}, "kind": {Type: text},
		"metadata": {Type: meta}}}
}

// ownWords are the types that have a way of their own to be written.
var ownWords = map[reflect.Type]Type{
	reflect.TypeFor[resource.Quantity]():  {Kind: Quantity},
	reflect.TypeFor[intstr.IntOrString](): {Kind: IntOrString},
	reflect.TypeFor[metav1.Time]():        {Kind: Time},
	reflect.TypeFor[metav1.MicroTime]():   {Kind: Time, micro: true},
	reflect.TypeFor[metav1.Duration]():    {Kind: Duration},
}

// roundedLists is the type of lists of resources in core, whose defaulting rounds them; that of other groups does not.
var (
	resourceList = reflect.TypeFor[corev1.ResourceList]()
	roundedLists = &Type{Kind: Map, items: &Type{Kind: Quantity, milli: true}}
)

var unions = map[reflect.Type]bool{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): true,
}

// buildLocked returns the type of a Go type's values. Its branches are one row for each kind of Go type.
func (k *kinds) buildLocked(goType reflect.Type) *Type {
	if t, found := k.built[goType]; found {
		return t
	}
	t := &Type{}
	k.built[goType] = t
	if goType.Kind() == reflect.Pointer {
		// A struct that is still being built, because it contains itself, already has the map of fields that the copy shares.
		elem := k.buildLocked(goType.Elem())
		*t = *elem
		t.Pointer = true
		return t
	}
	if words, found := ownWords[goType]; found {
		*t = words
		return t
	}
	if unions[goType] {
		t.Kind, t.items = Union, k.buildLocked(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		return t
	}
	if reflect.PointerTo(goType).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return t // Raw JSON and the like: compared as it is written.
	}
	switch goType.Kind() {
	case reflect.String:
		t.Kind = String
	case reflect.Bool:
		t.Kind = Bool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		t.Kind = Number
	case reflect.Map:
		t.Kind, t.items = Map, k.buildLocked(goType.Elem())
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			t.Kind = Bytes
			break
		}
		t.Kind, t.items = List, k.buildLocked(goType.Elem())
		if goType == subsets {
			t.same = sameSubsets
		}
	case reflect.Struct:
		t.Kind, t.fields, t.computed = Struct, map[string]*Field{}, map[string]*Field{}
		k.addFieldsLocked(t, goType)
	}
	return t
}

// addFieldsLocked adds the fields of a struct and of those that are written in line.
// Its branches are the ways in which encoding/json reads the tag of a field.
func (k *kinds) addFieldsLocked(t *Type, goType reflect.Type) {
	defaults := defaultsOf(goType)
	for i := range goType.NumField() {
		goField := goType.Field(i)
		name, options, _ := strings.Cut(goField.Tag.Get("json"), ",")
		if name == "-" || !goField.IsExported() {
			continue
		}
		if name == "" && (goField.Anonymous || strings.Contains(options, "inline")) {
			k.addFieldsLocked(t, goField.Type)
			continue
		}
		if name == "" {
			name = goField.Name
		}
		of := k.buildLocked(goField.Type)
		if goField.Type == resourceList && goType.PkgPath() == resourceList.PkgPath() {
			of = roundedLists
		}
		field := &Field{Type: of, MergeKey: goField.Tag.Get("patchMergeKey"), fill: defaults[name]}
		t.fields[name] = field
		if field.fill != nil && (field.fill.compute != nil || field.fill.always != nil) {
			t.computed[name] = field
		}
	}
}
