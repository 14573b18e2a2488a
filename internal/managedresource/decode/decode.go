package decode

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
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

// Place is the place of a document.
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

// Released reports whether the object is to be released: mode Ignore (MRO-1).
func (o Object) Released() bool {
	return o.GetAnnotations()[resourcesv1alpha1.AnnotationMode] == resourcesv1alpha1.ModeIgnore
}

// Error names a document that could not be decoded, and its fault (MRD-5).
type Error struct {
	Place Place
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("Could not decode resource at %s: %v.", e.Place, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Result is the decoded content of a ManagedResource's Secrets.
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

// Checksum is that of the raw values, each as often as it has objects that are not released (MRD-17). For a large
// Secret with many objects it costs more than all the rest of decoding: who knows it already must not ask again.
func (r *Result) Checksum() string {
	digest := sha256.New()
	for _, v := range r.values {
		for range v.count {
			digest.Write(v.value)
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// Decode reads all documents of the Secrets, in the given order; keys in byte order (MRD-1). Documents that could not
// be decoded are in Result.Errors; if the Secrets exceed what a ManagedResource may have, that is the only error, and
// there are no objects. It always ends, with an error only if the context does.
func Decode(ctx context.Context, sources []Source) (Result, error) {
	left := newBudget()
	if place, err := measure(ctx, sources, left); ctx.Err() != nil {
		return Result{}, fmt.Errorf("decoding the Secrets: %w", ctx.Err())
	} else if err != nil {
		return Result{Errors: []*Error{{Place: place, Err: err}}}, nil
	}
	var result Result
	left.documents = maxDocuments // They were counted as parts; JSON has more than one in a part.
	for place, value := range values(sources) {
		objects, errs := decodeValue(ctx, place, value, left)
		if err := ctx.Err(); err != nil {
			return Result{}, fmt.Errorf("decoding the Secrets: %w", err)
		}
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
	return result, nil
}

// values are the data of the Secrets in the order in which they are read.
func values(sources []Source) iter.Seq2[Place, []byte] {
	return func(yield func(Place, []byte) bool) {
		for _, source := range sources {
			for _, key := range slices.Sorted(maps.Keys(source.Data)) {
				if !yield(Place{Secret: source.Secret, Key: key}, source.Data[key]) {
					return
				}
			}
		}
	}
}

// measure takes the Secrets from the budget of a ManagedResource, and returns where it is exceeded, if it is.
func measure(ctx context.Context, sources []Source, left *budget) (Place, error) {
	if len(sources) > maxSecrets {
		return Place{Secret: sources[maxSecrets].Secret},
			fmt.Errorf("the ManagedResource names more than %d Secrets", maxSecrets)
	}
	for place, value := range values(sources) {
		if err := left.spend(ctx, place.Key, value); err != nil {
			return place, err
		}
	}
	return Place{}, nil
}

// shownErrors is the number of errors that a message names, each with its place; a user corrects no more of them at a
// time.
const shownErrors = 20

// ErrorsMessage joins the errors the way the condition shows them (MRS-10), the first ones by name.
func ErrorsMessage(errs []*Error) string {
	texts := make([]string, 0, shownErrors+1)
	for _, err := range errs[:min(len(errs), shownErrors)] {
		texts = append(texts, err.Error())
	}
	if more := len(errs) - shownErrors; more > 0 {
		texts = append(texts, fmt.Sprintf("And %d more.", more))
	}
	return "Could not decode all new resources: [" + strings.Join(texts, " ") + "]"
}

func decodeValue(ctx context.Context, place Place, value []byte, left *budget) ([]Object, []*Error) {
	stream, err := left.buffers.open(place.Key, value)
	if err != nil {
		return nil, []*Error{{Place: place, Err: err}}
	}
	var objects []Object
	var errs []*Error
	for part := range left.buffers.parts(stream) {
		part.expanded = left.expansions[spot{&value[0], part.line}]
		for document := range part.documents(left) {
			if ctx.Err() != nil {
				return nil, nil
			}
			if left.documents--; left.documents < 0 {
				return objects, append(errs, &Error{Place: place, Err: fmt.Errorf("more than %d documents", maxDocuments)})
			}
			if document.err == nil && document.content != nil {
				document.err = checkMetadata(document.content)
			}
			if document.err != nil {
				errs = append(errs, &Error{Place: place, Err: document.err})
			} else if document.content != nil {
				objects = append(objects, Object{Unstructured: &unstructured.Unstructured{Object: document.content}, Place: place})
			}
			place.Index++
		}
	}
	return objects, errs
}
