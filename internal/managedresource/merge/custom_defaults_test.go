package merge

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const definedWidget = `
spec:
  versions:
  - name: v1
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          metadata: {type: object, properties: {labels: {default: {a: b}}}}
          status: {type: object, default: {phase: New}}
          spec:
            type: object
            default: {}
            properties:
              replicas: {type: integer, default: 1}
              optional: {type: object, properties: {inner: {type: string, default: x}}}
              strategy: {type: object, default: {kind: Rolling}, properties: {kind: {type: string}, surge: {type: integer, default: 2}}}
              ports: {type: array, items: {type: object, properties: {protocol: {type: string, default: TCP}}}}
              named: {type: object, additionalProperties: {type: object, properties: {size: {type: integer, default: 3}}}}
  - name: v1beta1
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, default: {old: true}}}}}
`

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	must.Succeed(t, err)
	o := &unstructured.Unstructured{}
	must.Succeed(t, utiljson.Unmarshal(raw, &o.Object))
	return o
}

// MRB-8: the defaults of a CustomResourceDefinition are those that the API server fills in, and no others.
func TestEqual_FillsInDefaultsOfCustomResources(t *testing.T) {
	for name, tc := range map[string]struct{ version, conversion, object, want string }{
		"all is left out":               {"v1", "", "{}", "{spec: {replicas: 1, strategy: {kind: Rolling, surge: 2}}}"},
		"what is there stays":           {"v1", "", "{spec: {replicas: 0, strategy: {}}}", "{spec: {replicas: 0, strategy: {surge: 2}}}"},
		"an optional object":            {"v1", "", "{spec: {replicas: 1, strategy: {surge: 1}, optional: {}}}", "{spec: {replicas: 1, strategy: {surge: 1}, optional: {inner: x}}}"},
		"items":                         {"v1", "", "{spec: {replicas: 1, strategy: {surge: 1}, ports: [{}, {protocol: UDP}]}}", "{spec: {replicas: 1, strategy: {surge: 1}, ports: [{protocol: TCP}, {protocol: UDP}]}}"},
		"values of a map":               {"v1", "", "{spec: {replicas: 1, strategy: {surge: 1}, named: {a: {}}}}", "{spec: {replicas: 1, strategy: {surge: 1}, named: {a: {size: 3}}}}"},
		"null and other types":          {"v1", "", "{spec: {replicas: null, strategy: text}}", "{spec: {replicas: null, strategy: text}}"},
		"a version that is not stored":  {"v1beta1", "", "{}", "{}"},
		"an unknown version":            {"v2", "", "{}", "{}"},
		"objects that are converted":    {"v1", "Webhook", "{}", "{}"},
		"objects that need not be that": {"v1", "None", "{spec: {replicas: 2, strategy: {surge: 1}}}", "{spec: {replicas: 2, strategy: {surge: 1}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			definition := parsed(t, definedWidget)
			if tc.conversion != "" {
				must.Succeed(t, unstructured.SetNestedField(definition.Object, tc.conversion, "spec", "conversion", "strategy"))
			}
			got := parsed(t, tc.object)
			NewCustomDefaults(definition, tc.version).Fill(got)
			expect.DeepEqual(t, got.Object, parsed(t, tc.want).Object)
		})
	}
}
