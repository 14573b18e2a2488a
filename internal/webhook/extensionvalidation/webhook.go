// Package extensionvalidation has the webhooks that validate resources of extensions.gardener.cloud and Etcds before
// controllers use them (A13 of the webhooks' contract), one for each kind. They read only the request.
//
// A kind is a row of the table in Webhooks. Its rules are two functions, one for the specification and one for
// changes, in a file of the kind's name. The rules for all kinds are in judge. Objects are decoded into slices
// (package specs), so other fields are ignored, except that any change is found while an object is being deleted
// (changes.go).
package extensionvalidation

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	druidv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/druid/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// Name is the prefix of the names of these webhooks in logs and metrics; the resource follows.
const Name = "extension-validation"

// Webhook validates one kind.
type Webhook struct {
	// Name is the name of the webhook in logs and metrics.
	Name     string
	Group    string
	Resource string
	// Path is the URL path of the webhook.
	Path   string
	Decide admission.Func

	kind string
}

// Webhooks returns all webhooks, in the order of A13.1.
func Webhooks() []Webhook {
	return []Webhook{
		of(kind[specs.BackupBucket]{
			called: "backup bucket", clusterScoped: true, required: "type region secretRef.name", immutable: "type region",
		}),
		of(kind[specs.BackupEntry]{
			called: "backup entry", clusterScoped: true, required: "type bucketName region secretRef.name", immutable: "type",
		}),
		of(kind[specs.Bastion]{
			called: "bastion", required: "type userData", immutable: "type", spec: bastion, update: bastionUpdate,
		}),
		of(kind[specs.ContainerRuntime]{
			called: "container runtime", required: "type binaryPath workerPool.name", immutable: "type workerPool.name",
		}),
		of(kind[specs.ControlPlane]{
			called: "control plane", required: "type region secretRef.name", immutable: "type region",
		}),
		of(kind[specs.DNSRecord]{
			called: "dns record", required: "type secretRef.name", immutable: "type name recordType", spec: dnsRecord,
		}),
		of(kind[druidv1alpha1.Etcd]{group: druidv1alpha1.GroupVersion, spec: etcd, update: etcdUpdate}),
		of(kind[specs.Extension]{called: "extension", required: "type", immutable: "type"}),
		of(kind[specs.Infrastructure]{
			called: "infrastructure", required: "type region secretRef.name", immutable: "type region",
		}),
		of(kind[specs.Network]{
			called: "network", required: "type", immutable: "type podCIDR serviceCIDR", spec: network, update: networkUpdate,
		}),
		of(kind[specs.OperatingSystemConfig]{
			called: "operatingsystemconfig", immutable: "type purpose", spec: operatingSystemConfig,
		}),
		of(kind[specs.SelfHostedShootExposure]{
			called: "SelfHostedShootExposure", required: "type", immutable: "type", spec: selfHostedShootExposure,
		}),
		of(kind[specs.Worker]{
			called: "worker", required: "type region secretRef.name", immutable: "type region", spec: worker,
		}),
	}
}

// kind describes a kind whose slice is T.
type kind[T any] struct {
	// group defaults to extensions.gardener.cloud/v1alpha1.
	group schema.GroupVersion
	// called is the word for an object in the error of a change during deletion; if it is empty, the error does not
	// list the changes (EV-44).
	called        string
	clusterScoped bool
	// required are the fields of the specification that must not be empty (EV-7), immutable those that must not
	// change (EV-6), separated by blanks.
	required, immutable string
	// spec validates the rest of the specification, update other changes; nil means no more rules.
	spec   func(*T) field.ErrorList
	update func(now, old *T) field.ErrorList
}

func of[T any](k kind[T]) Webhook {
	if k.group.Empty() {
		k.group = specs.GroupVersion
	}
	gvk := k.group.WithKind(reflect.TypeFor[T]().Name())
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	path := "/validate-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
	return Webhook{
		Name: Name + "-" + plural.Resource, Group: gvk.Group, Resource: plural.Resource, Path: path,
		Decide: admission.Validate(gvk, k.judge), kind: gvk.Kind,
	}
}

// judge follows the order of EV-1. An update of metadata only is accepted even if the specification violates rules
// that were less strict when the object was created (T4-4): otherwise no client could remove its finalizers (WB-18).
func (k kind[T]) judge(ctx context.Context, now, old *T) (field.ErrorList, error) {
	metadata := any(now).(metav1.Object)
	var all field.ErrorList
	if old != nil {
		all = apivalidation.ValidateObjectMetaAccessorUpdate(metadata, any(old).(metav1.Object), field.NewPath("metadata"))
		if metadata.GetDeletionTimestamp() == nil {
			if reflect.DeepEqual(judgedOf(now), judgedOf(old)) {
				return all, nil
			}
			all = append(all, k.stays(now, old)...)
		} else {
			changes, err := k.changes(ctx)
			if err != nil {
				return nil, err
			}
			if len(changes) == 0 {
				return all, nil
			}
			all = append(all, k.changed(changes))
		}
	}
	all = append(all, apivalidation.ValidateObjectMetaAccessor(metadata, !k.clusterScoped, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	for name := range strings.FieldsSeq(k.required) {
		all = append(all, required(pathOf(name), fmt.Sprintf("%s", fieldAt(now, name)))...)
	}
	if k.spec != nil {
		all = append(all, k.spec(now)...)
	}
	return all, nil
}

// stays enforces the rules for changes.
func (k kind[T]) stays(now, old *T) (all field.ErrorList) {
	for name := range strings.FieldsSeq(k.immutable) {
		all = append(all, apivalidation.ValidateImmutableField(fieldAt(now, name), fieldAt(old, name), pathOf(name))...)
	}
	if k.update != nil {
		all = append(all, k.update(now, old)...)
	}
	return all
}

// pathOf returns the path of a field of the specification.
func pathOf(name string) *field.Path {
	parts := strings.Split(name, ".")
	return spec.Child(parts[0], parts[1:]...)
}

// fieldAt returns the value of a field of an object's specification by its JSON name.
func fieldAt(object any, name string) any {
	value := reflect.ValueOf(object).Elem().FieldByName("Spec")
	for part := range strings.SplitSeq(name, ".") {
		of := value.Type()
		value = value.FieldByNameFunc(func(name string) bool {
			f, _ := of.FieldByName(name)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return key == part
		})
	}
	return value.Interface()
}

// judgedOf returns the fields of an object that its rules read: all fields but the metadata.
func judgedOf[T any](object *T) map[string]any {
	fields := map[string]any{}
	for field, value := range reflect.ValueOf(object).Elem().Fields() {
		if !field.Anonymous {
			fields[field.Name] = value.Interface()
		}
	}
	return fields
}

// changed returns the error for a change of the specification while the object is being deleted (EV-4, EV-44).
func (k kind[T]) changed(changes []string) *field.Error {
	path := field.NewPath("spec")
	if k.called == "" {
		return field.Invalid(path, field.OmitValueType{}, apivalidation.FieldImmutableErrorMsg)
	}
	return field.Forbidden(path, fmt.Sprintf("cannot update %s spec if deletion timestamp is set. Requested changes: %s", k.called, strings.Join(changes, ",")))
}

// changes returns the changes of the specification, in any field.
func (k kind[T]) changes(ctx context.Context) ([]string, error) {
	r := admission.RequestFrom(ctx)
	now, err := specOf(r.Object.Raw)
	if err != nil {
		return nil, err
	}
	old, err := specOf(r.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	spec, _ := reflect.TypeFor[T]().FieldByName("Spec")
	return changesOf(spec.Type, now, old), nil
}

func specOf(raw []byte) (any, error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := admission.Unmarshal(raw, &object); err != nil || len(object.Spec) == 0 {
		return nil, err
	}
	return admission.Tree(object.Spec)
}
