package extensionvalidation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
)

// selfHostedShootExposure enforces A13.9.
func selfHostedShootExposure(o *specs.SelfHostedShootExposure) field.ErrorList {
	var all field.ErrorList
	if o.Spec.CredentialsRef != nil {
		all = append(all, credentialsRef(o.Spec.CredentialsRef, o.Namespace, spec.Child("credentialsRef"))...)
	}
	for _, why := range validation.IsValidPortNum(int(o.Spec.Port)) {
		all = append(all, field.Invalid(spec.Child("port"), o.Spec.Port, why))
	}
	if len(o.Spec.Endpoints) == 0 {
		all = append(all, required(spec.Child("endpoints"), "")...)
	}
	for i := range o.Spec.Endpoints {
		endpoint, at := &o.Spec.Endpoints[i], spec.Child("endpoints").Index(i)
		all = append(all, requiredIn(at, "nodeName", endpoint.NodeName)...)
		for j, a := range endpoint.Addresses {
			all = append(all, nodeAddress(a, at.Child("addresses").Index(j))...)
		}
	}
	return all
}

// credentialsRef requires a Secret in the object's own namespace.
func credentialsRef(ref *corev1.ObjectReference, namespace string, path *field.Path) field.ErrorList {
	var all field.ErrorList
	for _, f := range []struct{ name, value, why string }{
		{"apiVersion", ref.APIVersion, "must provide an apiVersion"}, {"kind", ref.Kind, "must provide a kind"},
		{"namespace", ref.Namespace, "must provide a namespace"}, {"name", ref.Name, "must provide a name"},
	} {
		switch {
		case f.value == "":
			all = append(all, field.Required(path.Child(f.name), f.why))
		case f.name == "namespace" && f.value != namespace:
			all = append(all, field.Invalid(path.Child(f.name), f.value, "must equal metadata.namespace"))
		case f.name == "name":
			all = append(all, subdomain(path.Child(f.name), f.value)...)
		}
	}
	return append(all, oneOf(path, ref.GroupVersionKind().String(), corev1.SchemeGroupVersion.WithKind("Secret").String())...)
}

// nodeAddress validates an address according to its type.
func nodeAddress(a specs.NodeAddress, path *field.Path) field.ErrorList {
	all := requiredIn(path, "type", a.Type)
	if a.Type != "" {
		all = oneOf(path.Child("type"), a.Type, "ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP")
	}
	at := path.Child("address")
	if a.Address == "" {
		return append(all, required(at, "")...)
	}
	switch corev1.NodeAddressType(a.Type) {
	case corev1.NodeInternalIP, corev1.NodeExternalIP:
		return append(all, address(at, a.Address)...)
	case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
		return append(all, subdomain(at, a.Address)...)
	}
	return append(all, field.Invalid(at, a.Address, `invalid address for unsupported address type "`+a.Type+`"`))
}
