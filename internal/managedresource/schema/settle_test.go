package schema

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// KC-4 (a comparison shows what a write would change, and nothing else): what means the same is spelt as in the live object.
func TestSettle(t *testing.T) {
	for name, tc := range map[string]struct{ live, merged, want string }{
		"KC-4/defaults stay": {
			"{apiVersion: v1, kind: Service, spec: {type: ClusterIP, sessionAffinity: None, ports: [{name: http, port: 80, protocol: TCP, targetPort: 80}]}}",
			"{apiVersion: v1, kind: Service, spec: {ports: [{name: http, port: 80}]}}",
			"{apiVersion: v1, kind: Service, spec: {type: ClusterIP, sessionAffinity: None, ports: [{name: http, port: 80, protocol: TCP, targetPort: 80}]}}",
		},
		"KC-4/what is filled in": {
			"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}",
		},
		"KC-4/a field that goes": {
			"{apiVersion: v1, kind: ConfigMap, data: {a: b, c: d}, immutable: true}",
			"{apiVersion: v1, kind: ConfigMap, data: {a: x}}",
			"{apiVersion: v1, kind: ConfigMap, data: {a: x}}",
		},
		"KC-4/quantities as they are spelt": {
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, resources: {limits: {cpu: 100m, memory: 1Gi}}}, {name: b, image: x}]}}",
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: b, image: y}, {name: a, resources: {limits: {cpu: '0.1', memory: 2Gi}}}]}}",
			"{apiVersion: v1, kind: Pod, spec: {containers: [{name: b, image: y}, {name: a, resources: {limits: {cpu: 100m, memory: 2Gi}}}]}}",
		},
		"KC-4/schemas, one or many": {
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1, schema: {openAPIV3Schema: {items: [{type: a, nullable: false}, {type: b}]}}}]}}",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1, schema: {openAPIV3Schema: {items: [{type: a}, {type: c}]}}}]}}",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1, schema: {openAPIV3Schema: {items: [{type: a, nullable: false}, {type: c}]}}}]}}",
		},
		"KC-4/another type of JSON": {
			"{apiVersion: v1, kind: Pod, spec: {nodeSelector: {a: b}, tolerations: [{key: a}], securityContext: {runAsUser: 1}}}",
			"{apiVersion: v1, kind: Pod, spec: {nodeSelector: x, tolerations: y, securityContext: z}}",
			"{apiVersion: v1, kind: Pod, spec: {nodeSelector: x, tolerations: y, securityContext: z}}",
		},
		"KC-4/of another type of JSON": {
			"{apiVersion: v1, kind: Pod, spec: {nodeSelector: x, tolerations: y, securityContext: z}}",
			"{apiVersion: v1, kind: Pod, spec: {nodeSelector: {a: b}, tolerations: [{key: a}], securityContext: {runAsUser: 1}}}",
			"{apiVersion: v1, kind: Pod, spec: {nodeSelector: {a: b}, tolerations: [{key: a}], securityContext: {runAsUser: 1}}}",
		},
		"KC-4/an item more": {
			"{apiVersion: v1, kind: Pod, spec: {tolerations: [{key: a, operator: Equal}]}}",
			"{apiVersion: v1, kind: Pod, spec: {tolerations: [{key: a, operator: Equal}, {key: b}]}}",
			"{apiVersion: v1, kind: Pod, spec: {tolerations: [{key: a, operator: Equal}, {key: b}]}}",
		},
		"KC-4/what no type knows": {
			"{apiVersion: example.org/v1, kind: X, spec: {a: 1, b: {}}}",
			"{apiVersion: example.org/v1, kind: X, spec: {a: 2}}",
			"{apiVersion: example.org/v1, kind: X, spec: {a: 2}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live, merged := object(t, tc.live), object(t, tc.merged)
			kind, _ := Of(kindOf(live))
			expect.DeepEqual(t, kind.Complete(live, merged), object(t, tc.want), "KC-4")
		})
	}
}

func kindOf(object map[string]any) runtimeschema.GroupVersionKind {
	return runtimeschema.FromAPIVersionAndKind(text(object["apiVersion"]), text(object["kind"]))
}

// KC-4: writing the settled object is writing the merged one, and it is the live one exactly if a write changes nothing.
func TestPropertySettle(t *testing.T) {
	bases := []string{
		"{apiVersion: v1, kind: Service, metadata: {labels: {a: b}}, spec: {type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, selector: {a: b}, ports: [{name: http, port: 80, protocol: TCP, targetPort: 80}]}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {}, spec: {replicas: 1, progressDeadlineSeconds: 600, revisionHistoryLimit: 10, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Always, dnsPolicy: ClusterFirst, containers: [{name: a, image: 'x:1', imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, resources: {limits: {cpu: 100m}}, env: [{name: A, value: b}]}]}}}}",
		"{apiVersion: example.org/v1, kind: X, metadata: {annotations: {a: b}}, spec: {a: 1, list: [{name: a, b: {}}, 3]}}",
	}
	rapid.Check(t, func(rt *rapid.T) {
		live := object(t, rapid.SampledFrom(bases).Draw(rt, "live"))
		merged := runtime.DeepCopyJSON(live)
		for range rapid.IntRange(0, 4).Draw(rt, "edits") {
			change(rt, merged)
		}
		merged["apiVersion"], merged["kind"] = live["apiVersion"], live["kind"]
		kind, _ := Of(kindOf(live))
		completed := kind.Complete(live, merged)
		at := kind.Differ(completed, merged)
		must.True(rt, at == nil, "KC-4: writing the settled object differs at %v:\n%v\n%v", at, completed, merged)
		if at := kind.Differ(live, merged); at == nil && !cmp.Equal(live, completed) {
			rt.Fatalf("KC-4: a write changes nothing, and the comparison shows\n%s", cmp.Diff(live, completed))
		}
	})
}

// change removes, empties or replaces one value somewhere in an object.
func change(t *rapid.T, fields map[string]any) {
	names := slices.Sorted(maps.Keys(fields))
	if len(names) == 0 {
		fields["new"] = "x"
		return
	}
	name := rapid.SampledFrom(names).Draw(t, "field")
	if list, ok := fields[name].([]any); ok && len(list) > 0 && rapid.Bool().Draw(t, "into the list") {
		if item, ok := list[0].(map[string]any); ok {
			change(t, item)
			return
		}
	}
	if inner, ok := fields[name].(map[string]any); ok && rapid.Bool().Draw(t, "deeper") {
		change(t, inner)
		return
	}
	switch value := fields[name].(type) {
	case string:
		fields[name] = rapid.SampledFrom([]any{"", "x", value, nil}).Draw(t, "text")
		return
	case int64:
		fields[name] = rapid.SampledFrom([]any{int64(0), value + 1, nil}).Draw(t, "number")
		return
	}
	delete(fields, name)
}
