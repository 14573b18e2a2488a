package charts

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/must"
)

const (
	deploy    = "../../../deploy"
	namespace = "garden"
)

// charts are the names of all charts.
func charts(t testing.TB) []string {
	t.Helper()
	_ = os.Getenv("ESPALIER_INPUTS") // The test cache runs the tests anew if make test gives another checksum of the files outside this module.
	found, err := filepath.Glob(filepath.Join(deploy, "charts", "*", "Chart.yaml"))
	must.Succeed(t, err)
	var names []string
	for _, file := range found {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	if len(names) == 0 {
		t.Fatal("there are no charts")
	}
	return names
}

// cases are the values in the folder ci of a chart by name, and "" for none.
func cases(t testing.TB, name string) map[string]map[string]any {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(deploy, "charts", name, "ci", "*-values.yaml"))
	must.Succeed(t, err)
	all := map[string]map[string]any{"": {}}
	for _, file := range found {
		content, err := os.ReadFile(file)
		must.Succeed(t, err)
		values := map[string]any{}
		must.Succeed(t, yaml.UnmarshalStrict(content, &values))
		all[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = values
	}
	if len(all) < 3 {
		t.Fatalf("chart %s has %d cases", name, len(all))
	}
	return all
}

var (
	loaded  = map[string]*chart.Chart{}
	loading sync.Mutex
)

func load(t testing.TB, name string) *chart.Chart {
	t.Helper()
	loading.Lock()
	defer loading.Unlock()
	if c := loaded[name]; c != nil {
		return c
	}
	c, err := loader.Load(filepath.Join(deploy, "charts", name))
	must.Succeed(t, err)
	loaded[name] = c
	return c
}

// rendered is a release.
type rendered struct {
	// Text is all of it.
	Text string
	// Notes are what the operator is told.
	Notes   string
	Objects []*unstructured.Unstructured
}

// tryRender renders a chart, or returns why that is not possible.
func tryRender(t testing.TB, name string, values map[string]any) (*rendered, error) {
	t.Helper()
	return renderIn(load(t, name), namespace, values)
}

func renderIn(c *chart.Chart, namespace string, values map[string]any) (*rendered, error) {
	return renderBy(engine.Engine{Strict: true}, c, namespace, values)
}

// renderBy renders with an engine. A strict one ends at a value that is not there, as those are that a null takes away.
func renderBy(by engine.Engine, c *chart.Chart, namespace string, values map[string]any) (*rendered, error) {
	// Values come from files: what is not YAML is none.
	content, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal(content, &given); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "test", Namespace: namespace, Revision: 1, IsInstall: true}
	full, err := util.ToRenderValues(c, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := by.RenderWithContext(context.Background(), c, full)
	if err != nil {
		return nil, err
	}
	r := &rendered{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(file, "NOTES.txt") {
			r.Notes = files[file]
			continue
		}
		r.Text += "---\n# " + file + "\n" + files[file] + "\n"
	}
	r.Objects, err = objects(r.Text)
	return r, err
}

func render(t testing.TB, name string, values map[string]any) *rendered {
	t.Helper()
	r, err := tryRender(t, name, values)
	if err != nil {
		t.Fatalf("chart %s: %v", name, err)
	}
	return r
}

// all are the objects of a kind.
func all[T any](t testing.TB, r *rendered, kind string) []*T {
	t.Helper()
	var list []*T
	for _, object := range r.Objects {
		if object.GetKind() == kind {
			typed := new(T)
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true))
			list = append(list, typed)
		}
	}
	return list
}

// only is the only object of a kind.
func only[T any](t testing.TB, r *rendered, kind string) *T {
	t.Helper()
	list := all[T](t, r, kind)
	if len(list) != 1 {
		t.Fatalf("there are %d objects of kind %s", len(list), kind)
	}
	return list[0]
}

func deployment(t testing.TB, r *rendered) *appsv1.Deployment {
	t.Helper()
	return only[appsv1.Deployment](t, r, "Deployment")
}

// configuration is the file that the container is started with.
func configuration(t testing.TB, r *rendered) map[string]any {
	t.Helper()
	content := map[string]any{}
	must.Succeed(t, yaml.UnmarshalStrict([]byte(configurationText(t, r)), &content))
	return content
}

func configurationText(t testing.TB, r *rendered) string {
	t.Helper()
	pod := deployment(t, r).Spec.Template.Spec
	file := ""
	for _, argument := range pod.Containers[0].Args {
		if path, found := strings.CutPrefix(argument, "--config="); found {
			file = path
		}
	}
	return configured(t, r, file)
}

// configured is a file that the container has from a ConfigMap of the release.
func configured(t testing.TB, r *rendered, file string) string {
	t.Helper()
	volume, key := mountOf(t, &deployment(t, r).Spec.Template.Spec, file)
	if volume.ConfigMap == nil {
		t.Fatalf("%s is in no ConfigMap", file)
	}
	for _, cm := range all[corev1.ConfigMap](t, r, "ConfigMap") {
		if cm.Name == volume.ConfigMap.Name {
			return cm.Data[key]
		}
	}
	t.Fatalf("ConfigMap %s is not rendered", volume.ConfigMap.Name)
	return ""
}

// mountOf is the volume in which a file of the container is, and the file's name in it.
func mountOf(t testing.TB, pod *corev1.PodSpec, file string) (corev1.Volume, string) {
	t.Helper()
	for _, mount := range pod.Containers[0].VolumeMounts {
		if rest, found := strings.CutPrefix(file, mount.MountPath+"/"); found {
			for _, volume := range pod.Volumes {
				if volume.Name == mount.Name {
					return volume, rest
				}
			}
		}
	}
	t.Fatalf("%q is not mounted", file)
	return corev1.Volume{}, ""
}

// at is what a section has at a path.
func at(section map[string]any, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(section, strings.Split(path, ".")...)
	return value
}

// with is a copy of values with more of them.
func with(values map[string]any, path string, value any) map[string]any {
	result := runtime.DeepCopyJSON(asJSON(values))
	if err := unstructured.SetNestedField(result, asJSON(map[string]any{"v": value})["v"], strings.Split(path, ".")...); err != nil {
		panic(err) // A path through something that is no section: a mistake in a test.
	}
	return result
}

// asJSON is what is left of values in a file.
func asJSON(values map[string]any) map[string]any {
	content, err := yaml.Marshal(values)
	if err != nil {
		panic(err)
	}
	result := map[string]any{}
	if err := yaml.Unmarshal(content, &result); err != nil {
		panic(err)
	}
	return result
}

// rules are all rules of roles.
func rules(t testing.TB, r *rendered) []rbacv1.PolicyRule {
	t.Helper()
	var list []rbacv1.PolicyRule
	for _, role := range all[rbacv1.ClusterRole](t, r, "ClusterRole") {
		list = append(list, role.Rules...)
	}
	for _, role := range all[rbacv1.Role](t, r, "Role") {
		list = append(list, role.Rules...)
	}
	return list
}
