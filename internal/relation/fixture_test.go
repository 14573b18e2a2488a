package relation

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/graph"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// garden is a state with a graph and a clock.
type garden struct {
	*State
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	updates map[string]int
}

func newGarden(t *testing.T) *garden {
	g := &garden{t: t, clock: clocktesting.NewFakePassiveClock(now), updates: map[string]int{}}
	g.State = NewState(graph.New(Schema), g.clock, func(kind graph.Kind, operation string, _ time.Duration) {
		g.updates[Schema.Names[kind]+" "+operation]++
	})
	return g
}

// decode reads an object of a watched kind.
func decode(t *testing.T, w *Watch, text string) runtime.Object {
	t.Helper()
	object := w.New()
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		t.Fatalf("%s: %v\n%s", Schema.Names[w.Kind], err, text)
	}
	return object
}

func (g *garden) set(w *Watch, text string) {
	g.t.Helper()
	g.Set(w, decode(g.t, w, text))
}

// nothing is known of other objects.
type nothing struct{}

func (nothing) Seed(string) (bool, time.Time) { return true, time.Time{} }
func (nothing) ProjectOf(string) string       { return "" }
func (nothing) Now() time.Time                { return time.Time{} }

// vertex reads "Kind:namespace/name".
func vertex(t *testing.T, text string) graph.Vertex {
	t.Helper()
	kindName, rest, _ := strings.Cut(text, ":")
	kind, known := KindNamed(kindName)
	if !known {
		t.Fatalf("no kind %q", kindName)
	}
	// Names of ClusterRoleBindings have colons, but no slashes.
	if namespace, name, found := strings.Cut(rest, "/"); found {
		return graph.Vertex{Kind: kind, Namespace: namespace, Name: name}
	}
	return graph.Vertex{Kind: kind, Name: rest}
}

func (g *garden) leads(from, to string) bool {
	g.t.Helper()
	return g.Graph.Check(vertex(g.t, from), vertex(g.t, to)).Reached
}

func (g *garden) size() string {
	vertices, edges := g.Graph.Size()
	return fmt.Sprintf("%d / %d", vertices, edges)
}

func (g *garden) wantSize(want string) {
	g.t.Helper()
	if got := g.size(); got != want {
		var all []string
		shown, _ := g.Graph.Neighbourhoods(func(graph.Vertex) bool { return true }, graph.Bounds{})
		for _, n := range shown {
			for _, to := range n.Out {
				all = append(all, Schema.String(n.Vertex)+" -> "+Schema.String(to.Vertex))
			}
		}
		g.t.Errorf("got %s, want %s:\n%s", got, want, strings.Join(all, "\n"))
	}
}

func (g *garden) wantPath(from, to string, want bool) {
	g.t.Helper()
	if got := g.leads(from, to); got != want {
		g.t.Errorf("%s leads to %s: got %v, want %v", from, to, got, want)
	}
}

func render(t *testing.T, text string, values any) string {
	t.Helper()
	var out bytes.Buffer
	if err := template.Must(template.New("").Parse(text)).Execute(&out, values); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const shootText = `
metadata: {namespace: garden-dev, name: web, uid: 1234, annotations: {authentication.gardener.cloud/issuer: managed}}
spec:
  seedName: a
  secretBindingName: sb
  credentialsBindingName: cb
  cloudProfile: {name: cp}
  resources:
  - {name: one, resourceRef: {apiVersion: v1, kind: Secret, name: res-secret}}
  - {name: two, resourceRef: {apiVersion: v1, kind: ConfigMap, name: res-config}}
  - {name: three, resourceRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: res-identity}}
  - {name: four, resourceRef: {apiVersion: foo, kind: bar, name: unsupported}}
  dns:
    providers:
    - {credentialsRef: {apiVersion: v1, kind: Secret, name: dns1}}
    - {credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: WorkloadIdentity, name: dns2}}
  kubernetes:
    kubeAPIServer:
      auditConfig: {auditPolicy: {configMapRef: {name: audit}}}
      structuredAuthentication: {configMapName: authn}
      structuredAuthorization: {configMapName: authz, kubeconfigs: [{secretName: authz-kubeconfig, authorizerName: x}]}
`

const seedText = `
metadata: {name: a}
spec:
  backup: {provider: x, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: backup}}
  dns:
    provider: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns-provider}}
    internal: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns-internal}}
    defaults:
    - {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns-default-1}}
    - {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns-default-2}}
  resources:
  - {name: x, resourceRef: {apiVersion: v1, kind: Secret, name: res}}
`

const managedSeedText = `
metadata: {namespace: garden, name: child, annotations: { {{- .annotations -}} }}
spec:
  shoot: {name: child-shoot}
  gardenlet:
    bootstrap: {{.mode}}
    config:
      apiVersion: gardenlet.config.gardener.cloud/v1alpha1
      kind: GardenletConfiguration
      seedConfig:
        spec:
          backup: {secretRef: {namespace: garden, name: child-backup}}
          resources:
          - {name: x, resourceRef: {apiVersion: v1, kind: Secret, name: child-resource}}
`

const gardenletText = `
metadata: {namespace: garden, name: a, annotations: { {{- .annotations -}} }}
spec:
  deployment: {helm: {ociRepository: {pullSecretRef: {name: pull}, caBundleSecretRef: {name: ca}}}}
  config:
    apiVersion: gardenlet.config.gardener.cloud/v1alpha1
    kind: GardenletConfiguration
    seedConfig: {spec: {backup: {credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: gardenlet-backup}}}}
`
