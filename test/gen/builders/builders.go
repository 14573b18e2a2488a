// Package builders builds objects of the garden for tests, with the fields that its API gives them:
//
//	builders.Shoot("garden-dev", "web").OnSeed("a").CloudProfile("cp").Obj()
//
// Fields that tests often set have a method of their own. Any other field is set by its path (With, Add).
package builders

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Object is an object that is being built. Each method changes it, and returns it for the next one.
type Object struct{ fields map[string]any }

// The API groups of the garden, with the versions that the slices read.
const (
	core           = "core.gardener.cloud/v1beta1"
	security       = "security.gardener.cloud/v1alpha1"
	seedManagement = "seedmanagement.gardener.cloud/v1alpha1"
)

// versions are those of the kinds that references lead to.
var versions = map[string]string{
	"Secret": "v1", "ConfigMap": "v1", "InternalSecret": core, "Shoot": core, "WorkloadIdentity": security,
}

// New begins an object of any kind; an empty namespace is none.
func New(apiVersion, kind, namespace, name string) *Object {
	o := &Object{fields: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	if namespace != "" {
		o.With("metadata.namespace", namespace)
	}
	return o.With("metadata.name", name)
}

// Namespace begins a Namespace.
func Namespace(name string) *Object { return New("v1", "Namespace", "", name) }

// Secret begins a Secret.
func Secret(namespace, name string) *Object { return New("v1", "Secret", namespace, name) }

// ConfigMap begins a ConfigMap.
func ConfigMap(namespace, name string) *Object { return New("v1", "ConfigMap", namespace, name) }

// ServiceAccount begins a ServiceAccount with the names of Secrets with its tokens.
func ServiceAccount(namespace, name string, secrets ...string) *Object {
	o := New("v1", "ServiceAccount", namespace, name)
	for _, secret := range secrets {
		o.Add("secrets", map[string]any{"name": secret})
	}
	return o
}

// Shoot begins a Shoot.
func Shoot(namespace, name string) *Object { return New(core, "Shoot", namespace, name) }

// Seed begins a Seed.
func Seed(name string) *Object { return New(core, "Seed", "", name) }

// Project begins a Project with its namespace; an empty one is none.
func Project(name, namespace string) *Object {
	o := New(core, "Project", "", name)
	if namespace != "" {
		o.With("spec.namespace", namespace)
	}
	return o
}

// BackupBucket begins a BackupBucket.
func BackupBucket(name string) *Object { return New(core, "BackupBucket", "", name) }

// BackupEntry begins a BackupEntry in a BackupBucket; an empty one is none.
func BackupEntry(namespace, name, bucket string) *Object {
	o := New(core, "BackupEntry", namespace, name)
	if bucket != "" {
		o.With("spec.bucketName", bucket)
	}
	return o
}

// Bastion begins a Bastion.
func Bastion(namespace, name string) *Object {
	return New("operations.gardener.cloud/v1alpha1", "Bastion", namespace, name)
}

// SecretBinding begins a SecretBinding to the Secret <namespace>/<name>.
func SecretBinding(namespace, name, secret string) *Object {
	return New(core, "SecretBinding", namespace, name).With("secretRef", At(secret))
}

// CredentialsBinding begins a CredentialsBinding to credentials.
func CredentialsBinding(namespace, name string, credentials Reference) *Object {
	return New(security, "CredentialsBinding", namespace, name).With("credentialsRef", credentials)
}

// ControllerInstallation begins a ControllerInstallation of a ControllerRegistration.
func ControllerInstallation(name, registration string) *Object {
	return New(core, "ControllerInstallation", "", name).With("spec.registrationRef.name", registration)
}

// ControllerDeployment begins a ControllerDeployment.
func ControllerDeployment(name string) *Object {
	return New("core.gardener.cloud/v1", "ControllerDeployment", "", name)
}

// ManagedSeed begins a ManagedSeed of a Shoot; an empty one is none.
func ManagedSeed(namespace, name, shoot string) *Object {
	o := New(seedManagement, "ManagedSeed", namespace, name)
	if shoot != "" {
		o.With("spec.shoot.name", shoot)
	}
	return o
}

// Gardenlet begins a Gardenlet.
func Gardenlet(namespace, name string) *Object {
	return New(seedManagement, "Gardenlet", namespace, name)
}

// Reference leads to an object.
type Reference map[string]any

// Ref leads to an object of a kind by <name> or <namespace>/<name>. Secrets, ConfigMaps, InternalSecrets, WorkloadIdentities and Shoots have
// the version of their API; of any other kind nobody knows one.
func Ref(kind, name string) Reference {
	r := At(name)
	r["kind"], r["apiVersion"] = kind, versions[kind]
	if versions[kind] == "" {
		r["apiVersion"] = "v1"
	}
	return r
}

// Version replaces the version of the API.
func (r Reference) Version(apiVersion string) Reference {
	r["apiVersion"] = apiVersion
	return r
}

// At leads to an object whose kind is known, by <name> or <namespace>/<name>.
func At(name string) Reference {
	if namespace, name, found := strings.Cut(name, "/"); found {
		return Reference{"namespace": namespace, "name": name}
	}
	return Reference{"name": name}
}

// With sets a field by its path, such as "spec.dns.domain".
func (o *Object) With(path string, value any) *Object {
	parent, name := o.parent(path)
	parent[name] = value
	return o
}

// Add adds to a list by its path.
func (o *Object) Add(path string, items ...any) *Object {
	parent, name := o.parent(path)
	list, _ := parent[name].([]any)
	parent[name] = append(list, items...)
	return o
}

// Without removes a field by its path.
func (o *Object) Without(path string) *Object {
	parent, name := o.parent(path)
	delete(parent, name)
	return o
}

func (o *Object) parent(path string) (map[string]any, string) {
	at := o.fields
	parts := strings.Split(path, ".")
	for _, part := range parts[:len(parts)-1] {
		next, is := at[part].(map[string]any)
		if !is {
			next = map[string]any{}
			at[part] = next
		}
		at = next
	}
	return at, parts[len(parts)-1]
}

// But returns a copy to be changed.
func (o *Object) But() *Object { return &Object{fields: o.Obj().Object} }

// Obj returns the object.
func (o *Object) Obj() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(o.JSON(), &object.Object); err != nil {
		panic(err) // It was JSON a moment ago.
	}
	return object
}

// JSON returns the object as its API sends it.
func (o *Object) JSON() []byte {
	content, err := json.Marshal(o.fields)
	if err != nil {
		panic(err) // A test gave a value that JSON does not know.
	}
	return content
}

// Into decodes the object into one of another type, such as a slice of its kind.
func (o *Object) Into(object any) error {
	if err := json.Unmarshal(o.JSON(), object); err != nil {
		return fmt.Errorf("%s: %w", o.JSON(), err)
	}
	return nil
}

// Documents are objects as the documents of a YAML file.
func Documents(objects ...*Object) string {
	documents := make([]string, len(objects))
	for i, o := range objects {
		document, err := yaml.JSONToYAML(o.JSON())
		if err != nil {
			panic(err) // Whatever is JSON is YAML.
		}
		documents[i] = string(document)
	}
	return strings.Join(documents, "\n---\n")
}
