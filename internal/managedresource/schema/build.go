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

// kinds caches the types of the requested kinds, so that unused parts of Kubernetes cost no memory.
type kinds struct {
	found sync.Map // GroupVersionKind → *Type

	mu sync.Mutex
	// built has every type, also while it is being built, because types may contain themselves.
	built map[reflect.Type]*Type
	// foreign is the type of all kinds that are not built in.
	foreign *Type
}

var known = &kinds{built: map[reflect.Type]*Type{}}

// subsets is the type of the list in Endpoints that the API server regroups.
var subsets = reflect.TypeOf(corev1.Endpoints{}.Subsets) //nolint:staticcheck // Deprecated, and served all the same.

// Of returns the type of a kind, and whether the kind is built in.
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

// IsCustom reports whether the kinds of a group are custom resources, or served by another API server: the group has
// a dot and is not built in. The suffix k8s.io does not help, because the Gateway API, vertical autoscalers and
// snapshots use it, too.
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

// goTypeOf returns the Go type of a built-in kind. It ignores other types in the scheme, because their defaults are
// unknown.
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

// foreignType returns a type with the metadata only, which are the same for all kinds.
func foreignType(meta *Type) *Type {
	text := &Type{Kind: String}
	return &Type{Kind: Struct, fields: map[string]*Field{"apiVersion": {Type: text}, "kind": {Type: text},
		"metadata": {Type: meta}}}
}

// ownWords are the types with a text format of their own.
var ownWords = map[reflect.Type]Type{
	reflect.TypeFor[resource.Quantity]():  {Kind: Quantity},
	reflect.TypeFor[intstr.IntOrString](): {Kind: IntOrString},
	reflect.TypeFor[metav1.Time]():        {Kind: Time},
	reflect.TypeFor[metav1.MicroTime]():   {Kind: Time, micro: true},
	reflect.TypeFor[metav1.Duration]():    {Kind: Duration},
}

// roundedLists is the type of resource lists in group core, whose defaulting rounds quantities; other groups do not
// round.
var (
	resourceList = reflect.TypeFor[corev1.ResourceList]()
	roundedLists = &Type{Kind: Map, items: &Type{Kind: Quantity, milli: true}}
)

var unions = map[reflect.Type]bool{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): true,
}

// buildLocked returns the type for a Go type. It has one branch for each kind of Go type.
func (k *kinds) buildLocked(goType reflect.Type) *Type {
	if t, found := k.built[goType]; found {
		return t
	}
	t := &Type{}
	k.built[goType] = t
	if goType.Kind() == reflect.Pointer {
		// A struct that is still being built, because it contains itself, already has the map of fields, which the
		// copy shares.
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
		return t // Raw JSON and similar types are compared as they are written.
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

// addFieldsLocked adds the fields of a struct, including inlined ones. Its branches follow how encoding/json reads
// the tag of a field.
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
