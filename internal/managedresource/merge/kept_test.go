package merge

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	must.Succeed(t, yaml.Unmarshal([]byte(text), &object.Object))
	return object
}

func TestKeptField(t *testing.T) {
	const manifest = `{spec: {type: A, template: {spec: {containers: [{name: a, image: i}, {name: b, resources: {limits: {cpu: 1}}}]}}}}`
	for name, c := range map[string]struct {
		merged string
		fields []string
		want   string
	}{
		"MR-33/nothing is kept":           {manifest, []string{"spec.type", "spec.replicas"}, ""},
		"MR-33/a kept field":              {`{spec: {replicas: 3, type: A}}`, []string{"spec.type", "spec.replicas"}, "spec.replicas"},
		"MR-33/a part of a kept field":    {`{spec: {template: {spec: {containers: [{name: a, image: i, resources: {requests: {cpu: 2}}}, {name: b, resources: {limits: {cpu: 1}}}]}}}}`, []string{"spec.template.spec.containers[0].resources.requests[cpu]"}, "spec.template.spec.containers[0].resources.requests[cpu]"},
		"MR-33/a field around a kept one": {`{spec: {template: {spec: {containers: [{name: a, image: i}, {name: b, resources: {limits: {cpu: 2}}}]}}}}`, []string{"spec.template"}, ""},
		"MR-33/a longer name":             {`{spec: {replicas: 3}}`, []string{"spec.replicasMax"}, ""},
		"MR-33/metadata":                  {`{metadata: {labels: {a: b}}}`, []string{"metadata.labels"}, ""},
		"MR-33/no field":                  {`{spec: {replicas: 3}}`, []string{""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, KeptField(parse(t, manifest), parse(t, c.merged), c.fields), c.want)
		})
	}
}
