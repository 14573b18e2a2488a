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

// Source is one Secret, with its name and its data.
type Source struct {
	Secret types.NamespacedName
	Data   map[string][]byte
}

// Place is the place of a document in the Secrets.
type Place struct {
	Secret types.NamespacedName
	// Key is a key in the data of the Secret.
	Key string
	// Index is the number of the document in the key, from 0; skipped documents and documents with errors count
	// (MRD-5).
	Index int
}

func (p Place) String() string {
	return fmt.Sprintf("index %d in '%s' in secret '%s'", p.Index, p.Key, p.Secret)
}

// Object is a decoded document and its place.
type Object struct {
	*unstructured.Unstructured
	Place Place
}

// Released reports whether the object has mode Ignore, and must be released (MRO-1).
func (o Object) Released() bool {
	return o.GetAnnotations()[resourcesv1alpha1.AnnotationMode] == resourcesv1alpha1.ModeIgnore
}

// Error is the error of a document that could not be decoded (MRD-5).
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
	// Objects are in the order in which they were read.
	Objects []Object
	// Errors has an error for each document that could not be decoded (MRD-6).
	Errors []*Error

	values []countedValue
}

// countedValue is a raw value, with the number of its objects that count for the checksum.
type countedValue struct {
	value []byte
	count int
}

// Checksum returns the checksum of the raw values, each repeated for each of its objects that is not released
// (MRD-17). For a large Secret with many objects it takes longer than decoding: callers keep the result.
func (r *Result) Checksum() string {
	digest := sha256.New()
	for _, v := range r.values {
		for range v.count {
			digest.Write(v.value)
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// Decode reads all documents of the Secrets, in the given order; keys in byte order (MRD-1). Result.Errors has an
// error for each document that could not be decoded. If the Secrets exceed the limits of a ManagedResource, this is
// the only error, and there are no objects. Decode returns an error only if the context ends.
func Decode(ctx context.Context, sources []Source) (Result, error) {
	left := newBudget()
	if place, err := measure(ctx, sources, left); ctx.Err() != nil {
		return Result{}, fmt.Errorf("decoding the Secrets: %w", ctx.Err())
	} else if err != nil {
		return Result{Errors: []*Error{{Place: place, Err: err}}}, nil
	}
	var result Result
	left.documents = maxDocuments // measure counted parts, and a part may have many JSON documents.
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

// values yields the data of the Secrets in the order in which they are read.
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

// measure subtracts the Secrets from the budget of a ManagedResource, and returns the place that exceeds it, with an
// error.
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

// shownErrors is the number of errors in a message, each with its place: a user corrects no more of them at a time.
const shownErrors = 20

// ErrorsMessage joins the errors for the condition (MRS-10): the first ones in full, and the number of the others.
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
