package references

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	batchv1 "k8s.io/api/batch/v1"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// 1.1: the test vectors of the contract, and REF-5 of an empty name.
func TestAnnotationKey(t *testing.T) {
	for name, want := range map[string]string{"name": "82a3537f", "test-1234": "6559bc9d", "test-5678": "4ed34879", "cm1": "51cc57e4", "secret1": "5b11618c", "": "e3b0c442"} {
		expect.Equal(t, (Reference{ConfigMap, name}).AnnotationKey(), "reference.resources.gardener.cloud/configmap-"+want, "REF-5/%q", name)
	}
	expect.Equal(t, (Reference{Secret, "secret1"}).AnnotationKey(), "reference.resources.gardener.cloud/secret-5b11618c")
}

func TestFromAnnotations(t *testing.T) {
	const prefix = "reference.resources.gardener.cloud/"
	for key, want := range map[string]string{
		prefix + "secret-foo": "secret s1", prefix + "configmap-82a3537f": "configmap s1",
		prefix + "secret-foo-bar": "", prefix + "secret/s1": "", prefix + "secret": "", prefix + "-foo": "", prefix + "pod-foo": "", "other/secret-foo": "", prefix: "",
	} {
		got := ""
		for _, r := range FromAnnotations(map[string]string{key: "s1"}) {
			got += string(r.Kind) + " " + r.Name
		}
		expect.Equal(t, got, want, "GC-7/BH-GC-5, %s", key)
	}
	got := FromAnnotations(map[string]string{prefix + "secret-foo": ""})
	expect.True(t, got == nil, "GC-7/an empty value: got %v", got)
}

// TestWalkerKnowsAllFields: every field of a Pod's spec that can name a Secret or ConfigMap is found, whatever version of the API the types
// are of: of init containers and ephemeral ones, too (OPB-32). Each gets a name of its own.
func TestWalkerKnowsAllFields(t *testing.T) {
	spec := &corev1.PodSpec{}
	wanted := map[string]Reference{}
	fill(reflect.ValueOf(spec).Elem(), "spec", "", func(path, parent string) string {
		kind := Secret
		if strings.Contains(parent, "ConfigMap") {
			kind = ConfigMap
		}
		name := fmt.Sprintf("n%d", len(wanted))
		wanted[path] = Reference{kind, name}
		return name
	})
	expect.True(t, len(wanted) >= 24, "only %d fields were found in the types: %v", len(wanted), wanted)
	found := FromPodSpec(spec)
	for path, want := range wanted {
		expect.True(t, slices.Contains(found, want), "OPB-32: %s (%s) is not found: a new field?", path, want.Kind)
	}
	expect.Equal(t, len(found), len(wanted), "references are found")
}

var nameOfSecret = regexp.MustCompile(`(?i)(secret|configmap).*name$`)

// fill sets every string that can name a Secret or ConfigMap: the name of a local reference, of a source, selector or projection of one of
// both kinds, and fields that say so by their own name.
func fill(v reflect.Value, path, parent string, name func(path, parent string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, parent, name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), path+"[]", parent, name)
		}
	case reflect.Struct:
		if v.Type().PkgPath() != "k8s.io/api/core/v1" {
			return // Times, quantities and selectors name nothing.
		}
		typeName := v.Type().Name()
		if typeName == "LocalObjectReference" && !strings.Contains(parent, "ConfigMap") && !strings.Contains(parent, "Secret") {
			parent = typeName
		} else if typeName != "LocalObjectReference" {
			parent = typeName
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			at := path + "." + field.Name
			isName := typeName == "LocalObjectReference" && field.Name == "Name" || nameOfSecret.MatchString(field.Name) ||
				field.Name == "Name" && (strings.Contains(typeName, "Secret") || strings.Contains(typeName, "ConfigMap"))
			if v.Field(i).Kind() == reflect.String && isName {
				v.Field(i).SetString(name(at, parent))
				continue
			}
			fill(v.Field(i), at, parent, name)
		}
	}
}

func spec() corev1.PodSpec {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	return corev1.PodSpec{
		Containers: []corev1.Container{
			{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("secret1")}}, {ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("cm1")}}}},
			{Env: []corev1.EnvVar{
				{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("secret2")}}},
				{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("cm2")}}}, {Value: "x"},
			}},
		},
		InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("secret6")}}}}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret3"}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("cm3")}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("secret4")}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("cm4")}}, {}}}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
		},
		ImagePullSecrets: []corev1.LocalObjectReference{local("secret5"), local("")},
	}
}

func wanted(extra ...string) map[string]string {
	all := map[string]string{"own": "x"}
	for _, name := range []string{"cm1", "cm2", "cm3", "cm4"} {
		all[Reference{ConfigMap, name}.AnnotationKey()] = name
	}
	for _, name := range []string{"secret1", "secret2", "secret3", "secret4", "secret5", "secret6"} {
		all[Reference{Secret, name}.AnnotationKey()] = name
	}
	for _, key := range extra {
		all[key] = ""
	}
	return all
}

// stale is what objects have before: annotations of their own, and references of before.
func stale() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: "o", Annotations: map[string]string{"own": "x", "reference.resources.gardener.cloud/secret-00000000": "old"}}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: stale(), Spec: spec()}
}

// REF-1 to REF-4, BH-GC-7, BH-GC-10: all types of the contract, all places, foreign annotations kept and stale ones gone.
func TestInjectAnnotations(t *testing.T) {
	cron := &batchv1.CronJob{ObjectMeta: stale(), Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: stale(), Spec: batchv1.JobSpec{Template: template()}}}}
	oldCron := &batchv1beta1.CronJob{ObjectMeta: stale(), Spec: batchv1beta1.CronJobSpec{JobTemplate: batchv1beta1.JobTemplateSpec{ObjectMeta: stale(), Spec: batchv1.JobSpec{Template: template()}}}}
	for _, object := range []runtime.Object{
		&corev1.Pod{ObjectMeta: stale(), Spec: spec()},
		&appsv1.Deployment{ObjectMeta: stale(), Spec: appsv1.DeploymentSpec{Template: template()}},
		&appsv1beta2.Deployment{ObjectMeta: stale(), Spec: appsv1beta2.DeploymentSpec{Template: template()}},
		&appsv1beta1.Deployment{ObjectMeta: stale(), Spec: appsv1beta1.DeploymentSpec{Template: template()}},
		&appsv1.StatefulSet{ObjectMeta: stale(), Spec: appsv1.StatefulSetSpec{Template: template()}},
		&appsv1beta2.StatefulSet{ObjectMeta: stale(), Spec: appsv1beta2.StatefulSetSpec{Template: template()}},
		&appsv1beta1.StatefulSet{ObjectMeta: stale(), Spec: appsv1beta1.StatefulSetSpec{Template: template()}},
		&appsv1.DaemonSet{ObjectMeta: stale(), Spec: appsv1.DaemonSetSpec{Template: template()}},
		&appsv1beta2.DaemonSet{ObjectMeta: stale(), Spec: appsv1beta2.DaemonSetSpec{Template: template()}},
		&batchv1.Job{ObjectMeta: stale(), Spec: batchv1.JobSpec{Template: template()}},
		cron, oldCron,
	} {
		for round := range 2 {
			must.Succeed(t, InjectAnnotations(object, "extra"), "%T", object)
			h, err := holderOf(object)
			must.Succeed(t, err)
			places := 2
			switch object.(type) {
			case *corev1.Pod:
				places = 1
			case *batchv1.CronJob, *batchv1beta1.CronJob:
				places = 3
			}
			expect.Equal(t, len(h.present), places, "BH-GC-7/BH-GC-10: %T: annotated at %d places", object, len(h.present))
			for _, annotations := range h.present {
				if diff := cmp.Diff(wanted("extra"), annotations); diff != "" && round == 0 {
					t.Errorf("REF-1/REF-2: %T: %s", object, diff)
				} else if diff != "" {
					t.Errorf("REF-6: %T: the second time: %s", object, diff)
				}
				if value, found := annotations["extra"]; !found || value != "" {
					t.Errorf("REF-3: %T: the additional key has the value %q: %t", object, value, found)
				}
				expect.Equal(t, annotations[Reference{Secret, "secret6"}.AnnotationKey()], "secret6", "REF-4: %T: what an init container names is read here", object)
			}
		}
	}
	if cron.Spec.JobTemplate.Annotations["own"] != "x" || len(cron.Spec.JobTemplate.Spec.Template.Annotations) != len(wanted("extra")) {
		t.Error("REF-1: the templates of a CronJob are not annotated")
	}
}

func TestInjectAnnotationsElsewhere(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: stale(), Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []corev1.LocalObjectReference{{Name: "secret1"}, {}}}}
	must.Succeed(t, InjectAnnotations(mr))
	expect.DeepEqual(t, mr.Annotations, map[string]string{"own": "x", "reference.resources.gardener.cloud/secret-5b11618c": "secret1"}, "ManagedResource")

	bare := &corev1.Pod{}
	err := InjectAnnotations(bare)
	expect.True(t, err == nil && bare.Annotations == nil, "nothing to write: %v, %v", bare.Annotations, err)

	prometheus := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": map[string]any{"annotations": map[string]any{"own": "x"}}, "spec": map[string]any{
			"volumes":          []any{map[string]any{"name": "v", "secret": map[string]any{"secretName": "secret1"}}},
			"containers":       []any{map[string]any{"name": "c", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "cm1"}}}}},
			"imagePullSecrets": []any{map[string]any{"name": "not-read"}},
			"remoteWrite":      []any{map[string]any{"url": "x", "basicAuth": map[string]any{"username": map[string]any{"name": "secret2"}, "password": map[string]any{"name": "secret3"}}}, map[string]any{"url": "y"}},
		}}}
	}
	p := prometheus()
	must.Succeed(t, InjectAnnotations(p))
	var names []string
	for key, name := range p.GetAnnotations() {
		if strings.HasPrefix(key, "reference.") {
			names = append(names, name)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"cm1", "secret1", "secret2", "secret3"}) || p.GetAnnotations()["own"] != "x" {
		t.Errorf("REF-1/Prometheus: got %v", p.GetAnnotations())
	}
	broken := prometheus()
	broken.Object["spec"].(map[string]any)["volumes"] = "x"
	if err := InjectAnnotations(broken); err == nil || len(broken.GetAnnotations()) != 1 {
		t.Errorf("a Prometheus that cannot be read: %v, %v", err, broken.GetAnnotations())
	}

	for _, object := range []runtime.Object{&corev1.Service{ObjectMeta: stale()}, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}} {
		before := object.DeepCopyObject()
		if err := InjectAnnotations(object); err == nil || err.Error() != fmt.Sprintf("unhandled object type %T", object) {
			t.Errorf("got %v", err)
		}
		expect.DeepEqual(t, object, before, "it has changed")
	}
}

// FromObject also knows what is annotated only, at any place, and ReplicaSets.
func TestFromObject(t *testing.T) {
	rs := &appsv1.ReplicaSet{ObjectMeta: stale(), Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"reference.resources.gardener.cloud/configmap-x": "in-template"}}, Spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}}}}
	found, err := FromObject(rs)
	must.Succeed(t, err)
	for _, want := range []Reference{{Secret, "old"}, {ConfigMap, "in-template"}, {Secret, "pull"}} {
		expect.True(t, slices.Contains(found, want), "%v is not among %v", want, found)
	}
	expect.Error(t, expect.ErrorOf(FromObject(&corev1.Service{})), "a Service refers to nothing that is known")
}
