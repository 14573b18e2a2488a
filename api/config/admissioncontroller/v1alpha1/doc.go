// Package v1alpha1 is the component configuration of admission-controller,
// admissioncontroller.config.gardener.cloud/v1alpha1 AdmissionControllerConfiguration: types, defaults and validation.
//
// +kubebuilder:object:generate=true
package v1alpha1
