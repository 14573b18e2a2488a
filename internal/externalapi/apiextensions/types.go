// Package apiextensions has the fields of CustomResourceDefinitions that decide whether a kind is served.
//
// +kubebuilder:object:generate=true
package apiextensions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// CustomResourceDefinitions is the resource.
var CustomResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// CustomResourceDefinition defines a custom kind.
//
// +kubebuilder:object:root=true
type CustomResourceDefinition struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               CustomResourceDefinitionSpec   `json:"spec,omitempty"`
	Status             CustomResourceDefinitionStatus `json:"status,omitempty"`
}

// CustomResourceDefinitionSpec is the specification of a CustomResourceDefinition.
type CustomResourceDefinitionSpec struct {
	Versions []Version `json:"versions,omitempty"`
}

// Version is a version of the kind.
type Version struct {
	Name   string `json:"name,omitempty"`
	Served bool   `json:"served,omitempty"`
}

// CustomResourceDefinitionStatus is the status of a CustomResourceDefinition.
type CustomResourceDefinitionStatus struct {
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition is a condition of a CustomResourceDefinition.
type Condition struct {
	Type   string `json:"type,omitempty"`
	Status string `json:"status,omitempty"`
}

// Serves returns the first of the given versions that is served, "" if none is.
func (c *CustomResourceDefinition) Serves(versions ...string) string {
	established := false
	for _, condition := range c.Status.Conditions {
		established = established || condition.Type == "Established" && condition.Status == "True"
	}
	if !established || c.DeletionTimestamp != nil {
		return ""
	}
	for _, wanted := range versions {
		for _, version := range c.Spec.Versions {
			if version.Name == wanted && version.Served {
				return wanted
			}
		}
	}
	return ""
}
