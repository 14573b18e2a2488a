// Package v1alpha1 has the fields of machine.sapcloud.io/v1alpha1 that are read.
//
// +kubebuilder:object:generate=true
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// Machines is the resource.
var Machines = schema.GroupVersionResource{Group: "machine.sapcloud.io", Version: "v1alpha1", Resource: "machines"}

// NodeLabel is the label of a Machine with the name of its Node.
const NodeLabel = "node"

// Machine is a machine that becomes a Node.
//
// +kubebuilder:object:root=true
type Machine struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               MachineSpec `json:"spec,omitempty"`
}

// MachineSpec is the specification of a Machine.
type MachineSpec struct {
	NodeTemplate NodeTemplate `json:"nodeTemplate,omitempty"`
}

// NodeTemplate has the initial metadata of the Node.
type NodeTemplate struct {
	Metadata TemplateMetadata `json:"metadata,omitempty"`
}

// TemplateMetadata is the part of the template's metadata that is read.
type TemplateMetadata struct {
	Labels map[string]string `json:"labels,omitempty"`
}
