package kubectl

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const manifests = `
apiVersion: v1
kind: ConfigMap
metadata: {name: fine, namespace: NS}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: edited, namespace: NS}
data: {a: b, c: d}
---
apiVersion: v1
kind: Secret
metadata: {name: secret, namespace: NS}
stringData: {password: hush}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: lost, namespace: NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nameless, namespace: NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: misnamed, namespace: NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: once, namespace: NS, annotations: {resources.gardener.cloud/ignore: "true"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: scaled, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: scaled}}
  template:
    metadata: {labels: {app: scaled}}
    spec: {containers: [{name: main, image: "image:1"}]}
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: scaled, namespace: NS}
spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: flowers.NS.example.org}
spec:
  group: NS.example.org
  scope: Namespaced
  names: {kind: Flower, plural: flowers, singular: flower}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {colour: {type: string}, petals: {type: integer, default: 5}}}}}}
---
apiVersion: NS.example.org/v1
kind: Flower
metadata: {name: rose, namespace: NS}
spec: {colour: red}
---
apiVersion: NS.example.org/v1
kind: Flower
metadata: {name: tulip, namespace: NS}
spec: {colour: red}
`

// edit changes a live object, as somebody does with kubectl.
func edit(t *testing.T, apiVersion, kind, ns, name, patch string) {
	t.Helper()
	must.Succeed(t, landscape.ShootClient.Patch(t.Context(), harness.Object(apiVersion, kind, ns, name), client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("kubectl-edit")))
}

// CLI-10 (why says whose an object is, and how it stands): from origins, inventories or neither, with ten requests at most.
func TestWhy(t *testing.T) {
	ns := namespace(t)
	apply(t, ns, "all", strings.ReplaceAll(manifests, "NS", ns))
	edit(t, "v1", "ConfigMap", ns, "edited", `{"data": {"a": "x", "c": null}}`)
	edit(t, "v1", "Secret", ns, "secret", `{"data": {"password": "bG91ZA=="}}`)
	edit(t, "v1", "ConfigMap", ns, "nameless", fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, resourcesv1alpha1.AnnotationOrigin))
	edit(t, "v1", "ConfigMap", ns, "misnamed", fmt.Sprintf(`{"metadata": {"annotations": {%q: "no/body"}}}`, resourcesv1alpha1.AnnotationOrigin))
	edit(t, "apps/v1", "Deployment", ns, "scaled", `{"spec": {"replicas": 3}}`)
	edit(t, ns+".example.org/v1", "Flower", ns, "tulip", `{"spec": {"colour": "blue"}}`)
	must.Succeed(t, landscape.ShootClient.Delete(t.Context(), harness.Object("v1", "ConfigMap", ns, "lost")))
	must.Succeed(t, landscape.ShootClient.Create(t.Context(), harness.Object("v1", "ConfigMap", ns, "foreign")))

	for name, tc := range map[string]struct {
		arguments []string
		code      int
		state     inspect.State
		proof     inspect.Proof
		paths     string
	}{
		"CLI-10/in sync":                     {[]string{"configmap", "fine"}, 0, inspect.InSync, inspect.ByOrigin, ""},
		"CLI-10/kind and name as one":        {[]string{"cm/fine"}, 0, inspect.InSync, inspect.ByOrigin, ""},
		"CLI-10/edited":                      {[]string{"ConfigMap", "edited"}, 1, inspect.Differs, inspect.ByOrigin, "data.a data.c"},
		"CLI-10/a Secret":                    {[]string{"secrets", "secret"}, 1, inspect.Differs, inspect.ByOrigin, "data.password"},
		"CLI-10/deleted":                     {[]string{"cm", "lost"}, 1, inspect.Missing, inspect.ByInventory, ""},
		"CLI-10/no origin":                   {[]string{"cm", "nameless"}, 1, inspect.Differs, inspect.ByInventory, "metadata.annotations.resources.gardener.cloud/origin"},
		"CLI-10/an origin that is not there": {[]string{"cm", "misnamed"}, 1, inspect.Differs, inspect.ByInventory, "metadata.annotations.resources.gardener.cloud/origin"},
		"CLI-10/created once":                {[]string{"cm", "once"}, 0, inspect.LeftAlone, inspect.ByOrigin, ""},
		"CLI-10/an autoscaler's replicas":    {[]string{"deploy", "scaled"}, 0, inspect.InSync, inspect.ByOrigin, ""},
		"CLI-10/another version":             {[]string{"hpa", "scaled"}, 0, inspect.InSync, inspect.ByOrigin, ""},
		"CLI-10/a definition's defaults":     {[]string{"flower." + ns + ".example.org", "rose"}, 0, inspect.InSync, inspect.ByOrigin, ""},
		"CLI-10/a plural and a version":      {[]string{"flowers.v1." + ns + ".example.org", "tulip"}, 1, inspect.Differs, inspect.ByOrigin, "spec.colour"},
		"CLI-10/nobody's":                    {[]string{"cm", "foreign"}, 0, inspect.Unmanaged, "", ""},
		"CLI-10/nobody's, and not there":     {[]string{"cm", "nothing"}, 1, inspect.Missing, "", ""},
		"CLI-10/cluster-scoped":              {[]string{"crd", "flowers." + ns + ".example.org"}, 0, inspect.InSync, inspect.ByOrigin, ""},
		"CLI-10/a custom kind by its name":   {[]string{"flower", "tulip"}, 1, inspect.Differs, inspect.ByOrigin, "spec.colour"},
		"CLI-10/a custom kind in sync":       {[]string{"flower", "rose"}, 0, inspect.InSync, inspect.ByOrigin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, append([]string{"why", "-n", ns, "-o", "json"}, tc.arguments...)...)
			report := decoded[inspect.Report](t, got)
			var paths []string
			for _, d := range report.Differences {
				paths = append(paths, d.Path)
				if d.By == nil || d.By.Manager != "kubectl-edit" {
					expect.Equal(t, d.Live, "", "CLI-10: %s was written by %+v", d.Path, d.By)
				}
			}
			proof := inspect.Proof("")
			if report.Owner != nil {
				proof = report.Owner.Proof
			}
			expect.True(t, got.code == tc.code && report.State == tc.state && proof == tc.proof && strings.Join(paths, " ") == tc.paths,
				"CLI-10: exit code %d, %s by %q, differs at %v\n%s%s", got.code, report.State, proof, paths, got.stdout, got.stderr)
			expect.True(t, len(got.requests) <= 10, "CLI-10: %d requests: %v", len(got.requests), got.requests)
			if strings.Contains(got.stdout, "hush") || strings.Contains(got.stdout, "bG91ZA") || strings.Contains(got.stdout, "aHVzaA") {
				t.Errorf("CLI-10: the value of a Secret is in\n%s", got.stdout)
			}
			t.Logf("%d requests, %s", len(got.requests), got.took)
			t.Log("\n" + ask(t, append([]string{"why", "-n", ns}, tc.arguments...)...).stdout)
		})
	}
}

// MRB-51: an object that a run deleted is not there, and why says when and for what reason, also if its ManagedResource is gone.
func TestWhyOfDeletedObjects(t *testing.T) {
	ns := namespace(t)
	configMap := func(name string) string {
		return fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}\n", name, ns)
	}
	apply(t, ns, "web", configMap("first")+configMap("second"))
	must.Succeed(t, landscape.SeedClient.Update(t.Context(), harness.Secret(ns, "web", map[string][]byte{"all.yaml": []byte(configMap("second"))})))
	deleted := func(name, reason string) {
		t.Helper()
		eventually(t, func() error {
			got := ask(t, "why", "-n", ns, "--source-namespace", ns, "cm", name, "-o", "json")
			report := decoded[inspect.Report](t, got)
			if len(report.Deleted) != 1 || report.Deleted[0].Text != "a run of ManagedResource "+ns+"/web deleted it, because "+reason || len(got.requests) > 10 {
				return fmt.Errorf("MRB-51: %d requests: %s%s", len(got.requests), got.stdout, got.stderr)
			}
			return nil
		})
	}
	deleted("first", "no manifest has the object")
	must.Succeed(t, landscape.SeedClient.Delete(t.Context(), harness.ManagedResource(ns, "web", "web")))
	deleted("second", "the ManagedResource is deleted")
	t.Log("\n" + ask(t, "why", "-n", ns, "cm", "second").stdout)
}
