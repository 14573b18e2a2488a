package dropin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

// Objects as gardenlet and the reference write them, made from the contract and from nothing of this project.
const (
	managedBy      = "resources.gardener.cloud/managed-by"
	origin         = "resources.gardener.cloud/origin"
	description    = "resources.gardener.cloud/description"
	descriptionIs  = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\nAny modifications are discarded and the resource is returned to the original state."
	garbage        = "resources.gardener.cloud/garbage-collectable-reference"
	referencesAre  = "reference.resources.gardener.cloud/"
	finalizerIs    = "resources.gardener.cloud/gardener-resource-manager"
	dataKey        = "data.yaml.br"
	noCleanupLabel = "shoot.gardener.cloud/no-cleanup"
)

func hash8(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:8]
}

// release is a ManagedResource as gardenlet's helpers write it (HLP-1, HLP-2, HLP-3, HLP-4, HLP-6), and what the reference makes of it.
type release struct {
	namespace, name string
	objects         []map[string]any
	secret          *corev1.Secret
}

func newRelease(t *testing.T, namespace, name string, objects ...any) *release {
	t.Helper()
	r := &release{namespace: namespace, name: name}
	var documents []string
	for _, object := range objects {
		content, ok := object.(map[string]any)
		must.True(t, ok, "%T is no object", object)
		r.objects = append(r.objects, content)
		text, err := yaml.Marshal(content)
		must.Succeed(t, err)
		documents = append(documents, string(text))
	}
	compressed, err := harness.Compress([]byte(strings.Join(documents, "---\n")))
	must.Succeed(t, err)
	// HLP-2: the digest of the digests of the values.
	sum := sha256.Sum256(compressed)
	r.secret = harness.Secret(namespace, "managedresource-"+name+"-"+hash8([]byte(hex.EncodeToString(sum[:]))), map[string][]byte{dataKey: compressed})
	r.secret.Immutable = ptr.To(true)
	r.secret.Labels = map[string]string{garbage: "true"}
	return r
}

// managedResource is what gardenlet writes for a shoot (HLP-4).
func (r *release) managedResource() *resourcesv1alpha1.ManagedResource {
	mr := harness.ManagedResource(r.namespace, r.name, r.secret.Name)
	mr.Labels = map[string]string{"origin": "gardener"}
	mr.Annotations = map[string]string{referencesAre + "secret-" + hash8([]byte(r.secret.Name)): r.secret.Name}
	mr.Spec.InjectLabels = map[string]string{noCleanupLabel: "true"}
	return mr
}

// text is a string in an object, "" if it is not there.
func text(object map[string]any, fields ...string) string {
	value, _, _ := unstructured.NestedString(object, fields...)
	return value
}

// key is the one that the inventory is sorted by (MRD-12).
func key(object map[string]any) string {
	group, _, found := strings.Cut(text(object, "apiVersion"), "/")
	if !found {
		group = ""
	}
	namespace := text(object, "metadata", "namespace")
	if namespace == "" {
		namespace = "default"
	}
	return fmt.Sprintf("%s/%s/%s/%s", group, text(object, "kind"), namespace, text(object, "metadata", "name"))
}

// labels are those that an object gets (MRL-1, MRA-9).
func (r *release) labels(object map[string]any) map[string]string {
	labels, _, _ := unstructured.NestedStringMap(object, "metadata", "labels")
	if labels == nil {
		labels = map[string]string{}
	}
	labels[noCleanupLabel], labels[managedBy] = "true", "gardener"
	return labels
}

// inventory is status.resources (MRA-8, MRA-9, MRS-7).
func (r *release) inventory() []any {
	var all []any
	objects := slices.Clone(r.objects)
	slices.SortFunc(objects, func(a, b map[string]any) int { return strings.Compare(key(a), key(b)) })
	for _, object := range objects {
		entry := map[string]any{"apiVersion": text(object, "apiVersion"), "kind": text(object, "kind"), "name": text(object, "metadata", "name"), "labels": anyMap(r.labels(object))}
		if namespace := text(object, "metadata", "namespace"); namespace != "" {
			entry["namespace"] = namespace
		}
		if annotations, _, _ := unstructured.NestedStringMap(object, "metadata", "annotations"); len(annotations) > 0 {
			entry["annotations"] = anyMap(annotations)
		}
		all = append(all, entry)
	}
	return all
}

func anyMap(m map[string]string) map[string]any {
	result := map[string]any{}
	for k, v := range m {
		result[k] = v
	}
	return result
}

// checksum is status.secretsDataChecksum (MRD-17).
func (r *release) checksum() string {
	h := sha256.New()
	for range r.objects {
		h.Write(r.secret.Data[dataKey])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// conditions are those of what is applied, healthy and rolled out, in the order in which they come to be (MRS-3, MRS-9, MRH-10, MRP-6).
func conditions(at time.Time) []any {
	var all []any
	for _, c := range [][4]string{
		{"ResourcesHealthy", "True", "ResourcesHealthy", "All resources are healthy."},
		{"ResourcesProgressing", "False", "ResourcesRolledOut", "All resources have been fully rolled out."},
		{"ResourcesApplied", "True", "ApplySucceeded", "All resources are applied."},
	} {
		condition := map[string]any{"type": c[0], "status": c[1], "reason": c[2], "message": c[3]}
		for _, key := range []string{"lastTransitionTime", "lastUpdateTime"} {
			condition[key] = at.UTC().Format(time.RFC3339)
		}
		all = append(all, condition)
	}
	return all
}

// status is that of a ManagedResource which the reference has looked after.
func (r *release) status(generation int64, at time.Time) map[string]any {
	return map[string]any{"observedGeneration": generation, "resources": r.inventory(), "secretsDataChecksum": r.checksum(), "conditions": conditions(at)}
}

// applied is an object as the reference writes it where there is none (MR-25, MRL-1 … MRL-12).
func (r *release) applied(object map[string]any) *unstructured.Unstructured {
	result := (&unstructured.Unstructured{Object: object}).DeepCopy()
	result.SetLabels(r.labels(object))
	annotations := result.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[origin], annotations[description] = clusterID+":"+r.namespace+"/"+r.name, descriptionIs
	result.SetAnnotations(annotations)
	if _, found, _ := unstructured.NestedMap(object, "spec", "template"); found {
		labels, _, _ := unstructured.NestedStringMap(object, "spec", "template", "metadata", "labels")
		labels = maps.Clone(labels)
		labels[noCleanupLabel], labels[managedBy] = "true", "gardener"
		_ = unstructured.SetNestedStringMap(result.Object, labels, "spec", "template", "metadata", "labels")
	}
	return result
}

// leave puts into the clusters what the reference leaves there.
func (r *release) leave(t *testing.T, source, target *audited, at time.Time) {
	t.Helper()
	must.Succeed(t, source.client.Create(t.Context(), r.secret))
	mr := r.managedResource()
	mr.Finalizers = []string{finalizerIs}
	must.Succeed(t, source.client.Create(t.Context(), mr))
	must.Succeed(t, source.client.Status().Patch(t.Context(), mr, harness.MergePatch(map[string]any{"status": r.status(mr.Generation, at)})))
	for _, object := range r.objects {
		must.Succeed(t, target.client.Create(t.Context(), r.applied(object)))
	}
}

// live reads an object as it is.
func (a *audited) live(t *testing.T, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := harness.Object(apiVersion, kind, namespace, name)
	must.Succeed(t, a.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
	return object
}
