// Package extensionvalidation holds the webhooks that judge resources of extensions.gardener.cloud and Etcds before anybody acts on them
// (A13 of the webhooks' contract), one for each kind. They read nothing but the request.
//
// A kind is a row of the table in Webhooks: its rules are two functions, on the specification and on its changes, in a
// file of the kind's name. The rules for all kinds are in judge. Objects are decoded into slices (package specs), so
// that other fields are ignored; except for a change while an object is being deleted, which is found in any field
// (changes.go).
package extensionvalidation

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	druidv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/druid/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// Name is that of all these webhooks in logs and metrics, before the name of the resource.
const Name = "extension-validation"

// Webhook judges one kind.
type Webhook struct {
	// Name is the webhook's in logs and metrics.
	Name     string
	Group    string
	Resource string
	// Path is the URL path of the webhook.
	Path   string
	Decide admission.Func

	kind string
}

// Webhooks are all of them, in the order of A13.1.
func Webhooks() []Webhook {
	return []Webhook{
		of(kind[specs.BackupBucket]{kind: "BackupBucket", resource: "backupbuckets", called: "backup bucket", clusterScoped: true, spec: backupBucket, update: backupBucketUpdate}),
		of(kind[specs.BackupEntry]{kind: "BackupEntry", resource: "backupentries", called: "backup entry", clusterScoped: true, spec: backupEntry, update: backupEntryUpdate}),
		of(kind[specs.Bastion]{kind: "Bastion", resource: "bastions", called: "bastion", spec: bastion, update: bastionUpdate}),
		of(kind[specs.ContainerRuntime]{kind: "ContainerRuntime", resource: "containerruntimes", called: "container runtime", spec: containerRuntime, update: containerRuntimeUpdate}),
		of(kind[specs.ControlPlane]{kind: "ControlPlane", resource: "controlplanes", called: "control plane", spec: controlPlane, update: controlPlaneUpdate}),
		of(kind[specs.DNSRecord]{kind: "DNSRecord", resource: "dnsrecords", called: "dns record", spec: dnsRecord, update: dnsRecordUpdate}),
		of(kind[druidv1alpha1.Etcd]{group: druidv1alpha1.GroupVersion, kind: "Etcd", resource: "etcds", spec: etcd, update: etcdUpdate}),
		of(kind[specs.Extension]{kind: "Extension", resource: "extensions", called: "extension", spec: extension, update: extensionUpdate}),
		of(kind[specs.Infrastructure]{kind: "Infrastructure", resource: "infrastructures", called: "infrastructure", spec: infrastructure, update: infrastructureUpdate}),
		of(kind[specs.Network]{kind: "Network", resource: "networks", called: "network", spec: network, update: networkUpdate}),
		of(kind[specs.OperatingSystemConfig]{kind: "OperatingSystemConfig", resource: "operatingsystemconfigs", called: "operatingsystemconfig", spec: operatingSystemConfig, update: operatingSystemConfigUpdate}),
		of(kind[specs.SelfHostedShootExposure]{kind: "SelfHostedShootExposure", resource: "selfhostedshootexposures", called: "SelfHostedShootExposure", spec: selfHostedShootExposure, update: selfHostedShootExposureUpdate}),
		of(kind[specs.Worker]{kind: "Worker", resource: "workers", called: "worker", spec: worker, update: workerUpdate}),
	}
}

// kind describes a kind whose slice is T.
type kind[T any] struct {
	// group is extensions.gardener.cloud/v1alpha1 if it is empty.
	group          schema.GroupVersion
	kind, resource string
	// called is the word for an object in the message about a change during deletion; without it the message names
	// nothing (EV-44).
	called        string
	clusterScoped bool
	// spec judges the specification, update its changes.
	spec   func(*T) field.ErrorList
	update func(now, old *T) field.ErrorList
}

func of[T any](k kind[T]) Webhook {
	if k.group.Empty() {
		k.group = specs.GroupVersion
	}
	path := "/validate-" + strings.ReplaceAll(k.group.Group, ".", "-") + "-" + k.group.Version + "-" + strings.ToLower(k.kind)
	return Webhook{Name: Name + "-" + k.resource, Group: k.group.Group, Resource: k.resource, Path: path, Decide: admission.Validate(k.group.WithKind(k.kind), k.judge), kind: k.kind}
}

// judge keeps the order of EV-1. An update that changes only metadata need not keep rules that may be stricter than when the object was
// created (T4-4): otherwise no client could remove its finalizers (WB-18).
func (k kind[T]) judge(ctx context.Context, now, old *T) (field.ErrorList, error) {
	meta := any(now).(metav1.Object)
	var all field.ErrorList
	if old != nil {
		all = apivalidation.ValidateObjectMetaAccessorUpdate(meta, any(old).(metav1.Object), field.NewPath("metadata"))
		if meta.GetDeletionTimestamp() == nil {
			if reflect.DeepEqual(judgedOf(now), judgedOf(old)) {
				return all, nil
			}
			all = append(all, k.update(now, old)...)
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
	all = append(all, apivalidation.ValidateObjectMetaAccessor(meta, !k.clusterScoped, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	return append(all, k.spec(now)...), nil
}

// judgedOf returns the fields of an object that its own rules read: all but the metadata.
func judgedOf[T any](object *T) map[string]any {
	fields := map[string]any{}
	for field, value := range reflect.ValueOf(object).Elem().Fields() {
		if !field.Anonymous {
			fields[field.Name] = value.Interface()
		}
	}
	return fields
}

// changed is the error about a change of the specification while the object is being deleted (EV-4, EV-44).
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

// specOf returns the specification of an object, as it is written.
func specOf(raw []byte) (any, error) {
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := admission.Unmarshal(raw, &object); err != nil || len(object.Spec) == 0 {
		return nil, err
	}
	return admission.Tree(object.Spec)
}
