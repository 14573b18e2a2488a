package admissiontest

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	securityv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/security/v1alpha1"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

// Reader is a fake cluster with a few objects, for webhooks that read. It distinguishes kinds only by name.
type Reader struct {
	Objects []*unstructured.Unstructured
	// Err has the errors of reads, by kind.
	Err map[string]error
	// Reads counts the reads, as "get Secret" or "list Shoot".
	Reads map[string]int
}

// NewReader returns a fake cluster with the objects in YAML documents.
func NewReader(t testing.TB, documents string) *Reader {
	t.Helper()
	r := &Reader{Err: map[string]error{}, Reads: map[string]int{}}
	for _, document := range strings.Split(documents, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			r.Objects = append(r.Objects, object)
		}
	}
	return r
}

// Referrers returns an index of the Shoots and bindings of the cluster.
func (r *Reader) Referrers() *referrers.Index {
	index := &referrers.Index{}
	for _, object := range r.Objects {
		var into runtime.Object
		switch object.GetKind() {
		case "Shoot":
			into = &gardencorev1beta1.Shoot{}
		case "SecretBinding":
			into = &gardencorev1beta1.SecretBinding{}
		case "CredentialsBinding":
			into = &securityv1alpha1.CredentialsBinding{}
		default:
			continue
		}
		if err := convert(object.Object, into); err != nil {
			panic(err)
		}
		index.Set(into)
	}
	return index
}

// kindIn returns the kind in an object, or the name of its type.
func kindIn(into interface {
	GetObjectKind() schema.ObjectKind
}) string {
	kind := into.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(into).Elem().Name()
	}
	return strings.TrimSuffix(kind, "List")
}

// Get implements client.Reader.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind := kindIn(into)
	r.Reads["get "+kind]++
	if err := r.fails(ctx, kind); err != nil {
		return err
	}
	for _, object := range r.Objects {
		if object.GetKind() == kind && client.ObjectKeyFromObject(object) == key {
			return convert(object.Object, into)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(kind) + "s"}, key.Name)
}

// List implements client.Reader; it ignores limits.
func (r *Reader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	kind := kindIn(into)
	r.Reads["list "+kind]++
	if err := r.fails(ctx, kind); err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	items := []any{}
	for _, object := range r.Objects {
		if object.GetKind() != kind || o.Namespace != "" && object.GetNamespace() != o.Namespace ||
			o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) || o.FieldSelector != nil && !o.FieldSelector.Matches(fieldsOf(object, o.FieldSelector)) {
			continue
		}
		items = append(items, object.Object)
	}
	return convert(map[string]any{"items": items}, into)
}

func (r *Reader) fails(ctx context.Context, kind string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.Err[kind]
}

func fieldsOf(object *unstructured.Unstructured, selector fields.Selector) fields.Set {
	set := fields.Set{}
	for _, requirement := range selector.Requirements() {
		set[requirement.Field], _, _ = unstructured.NestedString(object.Object, strings.Split(requirement.Field, ".")...)
	}
	return set
}

func convert(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
