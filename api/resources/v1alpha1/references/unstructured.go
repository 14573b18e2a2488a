package references

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// UndecodableError reports a field whose type is not the one that the object's kind has. It has none of the content.
type UndecodableError struct {
	Kind, Namespace, Name string
	// Field is the path of the field.
	Field string
}

// Error implements error.
func (e *UndecodableError) Error() string {
	return fmt.Sprintf("%s of %s %s/%s cannot be decoded", e.Field, e.Kind, e.Namespace, e.Name)
}

// prometheusSpec has the fields that a Prometheus shares with a Pod, and the credentials of its remote writes. Secrets
// to pull images are not read (REF-1).
type prometheusSpec struct {
	Containers     []corev1.Container `json:"containers"`
	InitContainers []corev1.Container `json:"initContainers"`
	Volumes        []corev1.Volume    `json:"volumes"`
	RemoteWrite    []struct {
		BasicAuth struct {
			Username corev1.SecretKeySelector `json:"username"`
			Password corev1.SecretKeySelector `json:"password"`
		} `json:"basicAuth"`
	} `json:"remoteWrite"`
}

// managedResourceSpec has the references of a ManagedResource.
type managedResourceSpec struct {
	SecretRefs []corev1.LocalObjectReference `json:"secretRefs"`
}

// holderOfUnstructured returns the holder for a Prometheus or a ManagedResource. Another operator may own the CRD, so
// that the content can be anything.
func holderOfUnstructured(o *unstructured.Unstructured) (holder, error) {
	annotations := o.GetAnnotations()
	h := holder{
		present:     []map[string]string{annotations},
		annotations: []func(map[string]string){func(wanted map[string]string) { o.SetAnnotations(replaced(annotations, wanted)) }},
	}
	switch o.GroupVersionKind().GroupKind() {
	case PrometheusKind:
		spec, err := decodeSpec[prometheusSpec](o, "containers", "initContainers", "volumes", "remoteWrite")
		if err != nil {
			return h, err
		}
		h.references = spec.references()
	case resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource").GroupKind():
		spec, err := decodeSpec[managedResourceSpec](o, "secretRefs")
		if err != nil {
			return h, err
		}
		h.references = fromSecretRefs(spec.SecretRefs)
	default:
		return h, fmt.Errorf("unhandled object type %T", o)
	}
	return h, nil
}

func (s *prometheusSpec) references() []Reference {
	found := FromPodSpec(&corev1.PodSpec{Containers: s.Containers, InitContainers: s.InitContainers, Volumes: s.Volumes})
	for _, write := range s.RemoteWrite {
		for _, name := range []string{write.BasicAuth.Username.Name, write.BasicAuth.Password.Name} {
			if name != "" {
				found = append(found, Reference{Secret, name})
			}
		}
	}
	return found
}

func fromSecretRefs(refs []corev1.LocalObjectReference) []Reference {
	var found []Reference
	for _, ref := range refs {
		if ref.Name != "" {
			found = append(found, Reference{Secret, ref.Name})
		}
	}
	return found
}

// decodeSpec decodes an object's spec. The error names the first of these fields that cannot be decoded.
func decodeSpec[T any](o *unstructured.Unstructured, fields ...string) (*T, error) {
	refused := func(field string) error {
		return &UndecodableError{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Field: field}
	}
	decoded := new(T)
	spec, found := o.Object["spec"]
	if !found || spec == nil {
		return decoded, nil
	}
	content, isObject := spec.(map[string]any)
	if !isObject {
		return nil, refused("spec")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, decoded); err == nil {
		return decoded, nil
	}
	for _, field := range fields {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{field: content[field]}, new(T)); err != nil {
			return nil, refused("spec." + field)
		}
	}
	return nil, refused("spec")
}
