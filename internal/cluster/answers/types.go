package answers

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// factor and slack bound what an answer takes once it is decoded: factor times its size and slack. The text takes up to three times its size
	// before, as it is read into one buffer and copied into another, so that all is within eight times the size and 8 MiB.
	factor, slack = 5, 8 << 20
	// small is the size up to which an answer is not scanned: of each two bytes no type makes more than slack/small × 2 bytes, 8 KiB.
	small = 2 << 10
)

// Types has the Go types that clients decode answers into.
type Types struct {
	schemes []*runtime.Scheme
	shapes  shapes
}

// NewTypes returns the types of the client library, and those of other schemes.
func NewTypes(others ...*runtime.Scheme) *Types {
	metadata := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(metadata)) // It fails only for two types of one name.
	return &Types{schemes: append(others, scheme.Scheme, metadata)}
}

// typeOf returns the Go type of a kind, nil for an unknown one.
func (t *Types) typeOf(gvk schema.GroupVersionKind) reflect.Type {
	for _, known := range t.schemes {
		if object, err := known.New(gvk); err == nil {
			return reflect.TypeOf(object).Elem()
		}
	}
	return nil
}

// question has the parts of a client's request that decide how its answer is decoded.
type question struct {
	path, accept string
	// limit is the number of objects of a page, 0 for no limit.
	limit int
	// pieces is true if the client decodes the objects of a list one by one, plain if the answer claims to be text.
	pieces, plain bool
}

// asked are the types that clients decode JSON into, whatever kind it names.
func (q *question) asked() []reflect.Type {
	var all []reflect.Type
	switch {
	case strings.Contains(q.accept, "as=PartialObjectMetadata"):
		all = append(all, reflect.TypeFor[metav1.PartialObjectMetadataList](), reflect.TypeFor[metav1.PartialObjectMetadata]())
	case strings.Contains(q.accept, "apidiscovery"):
		all = append(all, reflect.TypeFor[apidiscoveryv2.APIGroupDiscoveryList]())
	}
	if parts := strings.Split(strings.Trim(q.path, "/"), "/"); parts[0] == "api" && len(parts) < 3 || parts[0] == "apis" && len(parts) < 4 {
		all = append(all, reflect.TypeFor[metav1.APIResourceList](), reflect.TypeFor[metav1.APIGroupList](), reflect.TypeFor[metav1.APIGroup](), reflect.TypeFor[metav1.APIVersions]())
	}
	return all
}

// cost returns the memory that an answer takes once it is decoded, or an error if that is too much.
func (t *Types) cost(q *question, protobuf bool, text []byte) (int64, error) {
	if len(text) <= small {
		return 0, nil
	}
	count := t.json
	if protobuf {
		count = func(_ *question, text []byte) (*tally, error) { return t.protobuf(text) }
	}
	all, err := count(q, text)
	switch {
	case q.plain && errors.Is(err, errMalformed):
		return 0, nil // Nothing decodes it.
	case err != nil:
		return 0, err
	case q.limit > 0 && all.items > q.limit:
		return 0, fmt.Errorf("the answer has %d objects, and %d were asked for", all.items, q.limit)
	case all.bytes > factor*int64(len(text))+slack:
		return 0, fmt.Errorf("the answer of %d bytes would take %d bytes", len(text), all.bytes)
	}
	return all.bytes, nil
}

// json returns the largest size that JSON takes in any form that the client may decode it into.
func (t *Types) json(q *question, text []byte) (*tally, error) {
	types := q.asked()
	first, typed := (*shape)(nil), false
	// Only clients of types prefer Protocol Buffers; they make no maps.
	if prefers := strings.HasPrefix(q.accept, runtime.ContentTypeProtobuf); prefers && len(types) > 0 {
		first, typed, types = t.shapes.of(types[0]), true, types[1:]
	} else if prefers {
		typed = true // The kind is all that counts of the first walk.
	}
	all, err := walk(text, first, typed)
	switch {
	case err != nil:
		return nil, err
	case len(all.kinds) > 1 || len(all.versions) > 1:
		return nil, errNoKind
	case q.pieces:
		all.bytes = all.largest
		return &all.tally, nil
	}
	if len(all.kinds) == 1 && len(all.versions) == 1 {
		if of := t.typeOf(schema.FromAPIVersionAndKind(all.versions[0], all.kinds[0])); of != nil {
			types = append(types, of)
		}
	}
	for _, of := range types {
		next, err := walk(text, t.shapes.of(of), true)
		if err != nil {
			return nil, err
		}
		all.bytes = max(all.bytes, next.bytes)
	}
	return &all.tally, nil
}

// event returns the memory that an event of a watch takes once its object is decoded.
func (t *Types) event(q *question, protobuf bool, text []byte) (int64, error) {
	if len(text) <= small {
		return 0, nil
	}
	var object []byte
	if protobuf {
		var err error
		if object, err = second(text); err == nil {
			object, err = first(object)
		}
		if err != nil {
			return 0, err
		}
	} else {
		s := &scan{text: text}
		if object = s.member("object"); s.err != nil || object == nil {
			return 0, errMalformed
		}
	}
	return t.cost(q, protobuf, object)
}
