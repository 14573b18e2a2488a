package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// Source is one Secret: where it is, and its data.
type Source struct {
	Secret types.NamespacedName
	Data   map[string][]byte
}

// Place says where a document stands.
type Place struct {
	Secret types.NamespacedName
	// Key is the data key.
	Key string
	// Index counts the documents of the key from 0, skipped and failed ones included (MRD-5).
	Index int
}

func (p Place) String() string {
	return fmt.Sprintf("index %d in '%s' in secret '%s'", p.Index, p.Key, p.Secret)
}

// Object is a decoded document and where it stands.
type Object struct {
	*unstructured.Unstructured
	Place Place
}

// Released says whether the object is to be let go of: mode Ignore (MRO-1).
func (o Object) Released() bool {
	return o.GetAnnotations()[resourcesv1alpha1.AnnotationMode] == resourcesv1alpha1.ModeIgnore
}

// Error says which document could not be decoded, and why (MRD-5).
type Error struct {
	Place Place
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("Could not decode resource at %s: %v.", e.Place, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Result is what the Secrets of a ManagedResource hold.
type Result struct {
	// Objects in the order in which they were read.
	Objects []Object
	// Errors of the documents that could not be decoded (MRD-6).
	Errors []*Error

	values []countedValue
}

// countedValue is a raw value and how many of its objects count for the checksum.
type countedValue struct {
	value []byte
	count int
}

// Checksum is that of the raw values, each as often as it has objects that are not released (MRD-17). For a large Secret
// with many objects it costs more than all the rest of decoding: who knows it already must not ask again.
func (r *Result) Checksum() string {
	digest := sha256.New()
	for _, v := range r.values {
		for range v.count {
			digest.Write(v.value)
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// Decode reads all documents of the Secrets, in the given order; keys in byte order (MRD-1). It always ends, and what it
// could not decode is in Result.Errors.
func Decode(sources []Source) Result {
	var result Result
	for _, source := range sources {
		keys := make([]string, 0, len(source.Data))
		for key := range source.Data {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			value := source.Data[key]
			place := Place{Secret: source.Secret, Key: key}
			objects, errs := decodeValue(place, value)
			result.Errors = append(result.Errors, errs...)
			count := 0
			for _, object := range objects {
				result.Objects = append(result.Objects, object)
				if !object.Released() {
					count++
				}
			}
			if count > 0 {
				result.values = append(result.values, countedValue{value, count})
			}
		}
	}
	return result
}

// ErrorsMessage joins the errors the way the condition shows them (MRS-10).
func ErrorsMessage(errs []*Error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return "Could not decode all new resources: [" + strings.Join(texts, " ") + "]"
}

func decodeValue(place Place, value []byte) ([]Object, []*Error) {
	plain := value
	if strings.HasSuffix(place.Key, resourcesv1alpha1.BrotliSuffix) {
		var err error
		if plain, err = decompress(value); err != nil {
			return nil, []*Error{{Place: place, Err: err}}
		}
	} else if len(value) > maxValueBytes {
		return nil, []*Error{{Place: place, Err: errTooLarge}}
	}

	var objects []Object
	var errs []*Error
	for document := range documents(bytes.TrimPrefix(plain, []byte("\xef\xbb\xbf"))) {
		if place.Index >= maxDocuments {
			return objects, append(errs, &Error{Place: place, Err: fmt.Errorf("more than %d documents", maxDocuments)})
		}
		if document.err != nil {
			errs = append(errs, &Error{Place: place, Err: document.err})
		} else if document.content != nil {
			object := &unstructured.Unstructured{Object: document.content}
			if err := checkMetadata(object.Object); err != nil {
				errs = append(errs, &Error{Place: place, Err: err})
			} else {
				objects = append(objects, Object{Unstructured: object, Place: place})
			}
		}
		place.Index++
	}
	return objects, errs
}
