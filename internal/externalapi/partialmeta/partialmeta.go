// Package partialmeta has the types that the partial types of external APIs share: the metadata that is read, and
// references.
//
// A partial type declares only the fields that are read, under their real names. So it decodes from any version of
// the API, costs little, and cannot be written back.
//
// +kubebuilder:object:generate=true
package partialmeta

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Object is the part of an object's metadata that is read. Managed fields are not even decoded.
type Object struct {
	Namespace         string                  `json:"namespace,omitempty"`
	Name              string                  `json:"name,omitempty"`
	UID               types.UID               `json:"uid,omitempty"`
	ResourceVersion   string                  `json:"resourceVersion,omitempty"`
	Labels            map[string]string       `json:"labels,omitempty"`
	Annotations       map[string]string       `json:"annotations,omitempty"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp,omitempty"`
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (o *Object) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, Labels: o.Labels,
		Annotations: o.Annotations, OwnerReferences: o.OwnerReferences, DeletionTimestamp: o.DeletionTimestamp,
	}
}

// Metadata returns the metadata, which may be changed. Objects that embed it have the method, too.
func (o *Object) Metadata() *Object { return o }

// Reference names an object of any kind.
type Reference struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
}

// NameReference names an object whose kind and namespace are given.
type NameReference struct {
	Name string `json:"name,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// NamedResource is an entry of spec.resources.
type NamedResource struct {
	ResourceRef Reference `json:"resourceRef"`
}
