package merge

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/test/expect"
)

// TestMerge_OverlaysPods lays a manifest over the specification of a live Pod, field by field (MRM-15).
func TestMerge_OverlaysPods(t *testing.T) {
	for name, c := range map[string]struct{ live, desired, want string }{
		"MRM-15/a field of a structure":          {"{securityContext: {runAsUser: 1, runAsGroup: 2}}", "{securityContext: {runAsUser: 3}}", "{securityContext: {runAsUser: 3, runAsGroup: 2}}"},
		"MRM-15/a structure that is not there":   {"{hostname: h}", "{securityContext: {runAsUser: 3}}", "{hostname: h, securityContext: {runAsUser: 3}}"},
		"MRM-15/null means nothing":              {"{hostname: h}", "{hostname: null}", "{hostname: h}"},
		"MRM-15/an entry of a map":               {"{nodeSelector: {a: x, b: y}}", "{nodeSelector: {b: z, c: w}}", "{nodeSelector: {a: x, b: z, c: w}}"},
		"MRM-15/a quantity of a map":             {"{overhead: {cpu: '1', memory: 1Gi}}", "{overhead: {cpu: 1000m, memory: 2Gi}}", "{overhead: {cpu: '1', memory: 2Gi}}"},
		"MRM-15/a list without a key":            {"{readinessGates: [{conditionType: a}]}", "{readinessGates: [{conditionType: b}]}", "{readinessGates: [{conditionType: b}]}"},
		"MRM-15/a structure in place of text":    {"{hostname: h}", "{hostname: {x: y}}", "{hostname: {x: y}}"},
		"MRM-15/text in place of a structure":    {"{securityContext: {runAsUser: 1}}", "{securityContext: x}", "{securityContext: x}"},
		"MRM-15/text in place of a list":         {"{volumes: [{name: v}]}", "{volumes: x}", "{volumes: x}"},
		"MRM-15/an item of a list with a key":    {"{volumes: [{name: v, emptyDir: {}}, {name: w}]}", "{volumes: [{name: w, emptyDir: {medium: Memory}}]}", "{volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {medium: Memory}}]}"},
		"MRM-15/a field that nobody knows":       {"{future: {a: b}}", "{future: {c: d}}", "{future: {c: d}}"},
		"MRM-15/items of the same key":           {"{containers: [{name: c, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]}]}", "{containers: [{name: c, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]}]}", "{containers: [{name: c, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]}]}"},
		"MRM-15/a second item of a key is added": {"{containers: [{name: c, ports: [{containerPort: 80}]}]}", "{containers: [{name: c, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}", "{containers: [{name: c, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]}]}"},
		"MRM-15/tolerations are added":           {"{tolerations: [{key: a}]}", "{tolerations: [{key: b}, {key: a}]}", "{tolerations: [{key: a}, {key: b}]}"},
		"MRM-15/tolerations of the live Pod":     {"{tolerations: [{key: a}]}", "{}", "{tolerations: [{key: a}]}"},
		"MRM-15/tolerations where there is none": {"{hostname: h}", "{tolerations: [{key: b}]}", "{hostname: h, tolerations: [{key: b}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			live := fromYAML(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: n}\nspec: "+c.live+"\n")
			before := live.DeepCopy()
			merged := Merge(podManifest(t, c.desired), live, Options{Origin: "n/m"})
			want := fromYAML(t, "apiVersion: v1\nkind: Pod\nspec: "+c.want+"\n")
			expect.DeepEqual(t, merged.Object["spec"], want.Object["spec"], "%s", name)
			expect.DeepEqual(t, live.Object, before.Object, "the live Pod was changed")
		})
	}
}

// TestCheckUpdate_RefusesChangesOfPods lists the additions that a Pod accepts and refuses, besides images and tolerations (MRM-15).
func TestCheckUpdate_RefusesChangesOfPods(t *testing.T) {
	for name, c := range map[string]struct {
		live, merged string
		refused      bool
	}{
		"MRM-15/the same deadline":       {"{activeDeadlineSeconds: 100}", "{activeDeadlineSeconds: 100}", false},
		"MRM-15/a shorter one":           {"{activeDeadlineSeconds: 100}", "{activeDeadlineSeconds: 99}", false},
		"MRM-15/a longer one":            {"{activeDeadlineSeconds: 100}", "{activeDeadlineSeconds: 101}", true},
		"MRM-15/the first one":           {"{hostname: h}", "{hostname: h, activeDeadlineSeconds: 100}", false},
		"MRM-15/no specification before": {"null", "{hostname: h}", false},
		"MRM-15/no specification now":    {"{hostname: h}", "null", false},
		"MRM-15/the name of the host":    {"{hostname: h}", "{hostname: i}", true},
	} {
		pod := func(spec, version string) *unstructured.Unstructured {
			return fromYAML(t, "apiVersion: "+version+"\nkind: Pod\nmetadata: {name: p}\nspec: "+spec+"\n")
		}
		merged := pod(c.merged, "v1")
		merged.SetLabels(map[string]string{"new": "label"}) // Metadata can always be changed.
		expect.Equal(t, CheckUpdate(pod(c.live, "v1"), merged) != nil, c.refused, "%s", name)
		expect.Succeed(t, CheckUpdate(pod(c.live, "example.org/v1"), merged), "%s, of another group", name)
	}
}
