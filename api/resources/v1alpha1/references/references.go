// Package references is for programs that deploy ConfigMaps and Secrets which the garbage collector of resource-manager collects.
//
// Such objects are immutable, have a different name for each content, and the label
// resources.gardener.cloud/garbage-collectable-reference: "true". Annotations of a workload name the objects that it
// needs; InjectAnnotations writes them:
//
//	reference.resources.gardener.cloud/configmap-6559bc9d: test-1234
//
// The hash makes the key unique; it is not verified.
package references

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// Kind is a kind of referenced objects, as in the keys of annotations.
type Kind string

// Kinds that can be referred to.
const (
	// ConfigMap is the kind of ConfigMaps in keys.
	ConfigMap Kind = "configmap"
	// Secret is the kind of Secrets in keys.
	Secret Kind = "secret"
)

// hashLength is the number of hexadecimal digits in keys.
const hashLength = 8

// Reference names an object in the namespace of the workload that refers to it.
type Reference struct {
	// Kind of the object.
	Kind Kind
	// Name of the object.
	Name string
}

// AnnotationKey returns the key of the annotation for a reference: its kind, and the first digits of the SHA-256 of the name.
func (r Reference) AnnotationKey() string {
	hash := sha256.Sum256([]byte(r.Name))
	return resourcesv1alpha1.AnnotationReferencePrefix + string(r.Kind) + "-" + hex.EncodeToString(hash[:])[:hashLength]
}

// FromAnnotations returns the references in annotations. The hash in a key is not verified; a key of another form, an
// empty value and a kind that is neither ConfigMap nor Secret refer to nothing (GC-7).
func FromAnnotations(annotations map[string]string) []Reference {
	var found []Reference
	for key, name := range annotations {
		rest, isReference := strings.CutPrefix(key, resourcesv1alpha1.AnnotationReferencePrefix)
		parts := strings.Split(rest, "-")
		if !isReference || len(parts) != 2 || name == "" {
			continue
		}
		if kind := Kind(parts[0]); kind == ConfigMap || kind == Secret {
			found = append(found, Reference{kind, name})
		}
	}
	return found
}

// FromPodSpec returns the ConfigMaps and Secrets that a Pod refers to: in the environment of its containers, init
// containers and ephemeral containers, in its volumes, and as image pull Secrets. Empty names are left out; a name
// may be returned several times.
func FromPodSpec(spec *corev1.PodSpec) []Reference {
	w := walker{}
	for i := range spec.InitContainers {
		w.environment(spec.InitContainers[i].EnvFrom, spec.InitContainers[i].Env)
	}
	for i := range spec.Containers {
		w.environment(spec.Containers[i].EnvFrom, spec.Containers[i].Env)
	}
	for i := range spec.EphemeralContainers {
		w.environment(spec.EphemeralContainers[i].EnvFrom, spec.EphemeralContainers[i].Env)
	}
	for i := range spec.Volumes {
		w.volume(&spec.Volumes[i].VolumeSource)
	}
	for _, secret := range spec.ImagePullSecrets {
		w.add(Secret, secret.Name)
	}
	return w.found
}
