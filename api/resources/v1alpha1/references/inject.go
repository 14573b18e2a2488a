package references

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// PrometheusKind is the kind of Prometheus objects, which are given and read in their unstructured form.
var PrometheusKind = schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}

// InjectAnnotations replaces the reference annotations of a workload, and of its templates, by annotations for its
// present references. It keeps other annotations. It also writes the additional keys with an empty value, which
// refers to no object (REF-3).
//
// It handles Pods, Deployments, StatefulSets, DaemonSets, Jobs and CronJobs of all versions, ManagedResources, and
// unstructured Prometheus objects. For any other type it returns the error "unhandled object type" and does not
// change the object.
func InjectAnnotations(object runtime.Object, additional ...string) error {
	h, err := holderOf(object)
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, key := range additional {
		wanted[key] = ""
	}
	for _, reference := range h.references {
		wanted[reference.AnnotationKey()] = reference.Name
	}
	for _, write := range h.annotations {
		write(wanted)
	}
	return nil
}

// FromObject returns the references of a workload: those in its annotations and in those of its templates, and those
// of its Pods' specs. It handles the types of InjectAnnotations, ReplicaSets, and ServiceAccounts, whose Pods use the
// Secrets that they refer to. After an error the references are unknown.
func FromObject(object runtime.Object) ([]Reference, error) {
	if account, ok := object.(*corev1.ServiceAccount); ok {
		return fromAccount(account), nil
	}
	h, err := holderOf(object)
	if err != nil {
		return nil, err
	}
	found := h.references
	for _, annotations := range h.present {
		found = append(found, FromAnnotations(annotations)...)
	}
	return found, nil
}

func fromAccount(account *corev1.ServiceAccount) []Reference {
	w := walker{}
	for _, secret := range account.ImagePullSecrets {
		w.add(Secret, secret.Name)
	}
	for _, secret := range account.Secrets {
		w.add(Secret, secret.Name)
	}
	return append(w.found, FromAnnotations(account.Annotations)...)
}

// holder is an object with references, in a form that is the same for all kinds.
type holder struct {
	references []Reference
	// present are the annotations of the object and of its templates; annotations are functions that replace the
	// reference annotations among them.
	present     []map[string]string
	annotations []func(wanted map[string]string)
}

func (h *holder) at(annotations *map[string]string) {
	h.present = append(h.present, *annotations)
	h.annotations = append(h.annotations, func(wanted map[string]string) { *annotations = replaced(*annotations, wanted) })
}

func (h *holder) template(t *corev1.PodTemplateSpec) {
	h.references = append(h.references, FromPodSpec(&t.Spec)...)
	h.at(&t.Annotations)
}

// replaced returns a copy of annotations in which the wanted ones replace those for references.
func replaced(annotations, wanted map[string]string) map[string]string {
	result := maps.Clone(annotations)
	maps.DeleteFunc(result, func(key, _ string) bool {
		return strings.HasPrefix(key, resourcesv1alpha1.AnnotationReferencePrefix)
	})
	if result == nil && len(wanted) > 0 {
		result = map[string]string{}
	}
	maps.Copy(result, wanted)
	return result
}

func holderOf(object runtime.Object) (holder, error) {
	h := holder{}
	if own, ok := object.(metav1.ObjectMetaAccessor); ok {
		if meta, ok := own.GetObjectMeta().(*metav1.ObjectMeta); ok {
			h.at(&meta.Annotations)
		}
	}
	switch o := object.(type) {
	case *corev1.Pod:
		h.references = FromPodSpec(&o.Spec)
	case *resourcesv1alpha1.ManagedResource:
		h.references = fromSecretRefs(o.Spec.SecretRefs)
	case *batchv1.CronJob:
		h.at(&o.Spec.JobTemplate.Annotations)
		h.template(&o.Spec.JobTemplate.Spec.Template)
	case *batchv1beta1.CronJob:
		h.at(&o.Spec.JobTemplate.Annotations)
		h.template(&o.Spec.JobTemplate.Spec.Template)
	case *unstructured.Unstructured:
		return holderOfUnstructured(o)
	default:
		template := templateOf(object)
		if template == nil {
			return h, fmt.Errorf("unhandled object type %T", object)
		}
		h.template(template)
	}
	return h, nil
}

func templateOf(object runtime.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1beta2.Deployment:
		return &o.Spec.Template
	case *appsv1beta1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1beta2.StatefulSet:
		return &o.Spec.Template
	case *appsv1beta1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1beta2.DaemonSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	}
	return nil
}
