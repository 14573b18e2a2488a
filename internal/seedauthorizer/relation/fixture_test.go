package relation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
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

// seen is what a watch makes of an object.
func seen(t *testing.T, w *Watch, o *builders.Object) runtime.Object {
	t.Helper()
	object := w.New()
	must.Succeed(t, o.Into(object), "%s", Schema.Names[w.Kind])
	return object
}

func (g *garden) set(w *Watch, o *builders.Object) {
	g.t.Helper()
	g.Set(w, seen(g.t, w, o))
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
	must.True(t, known, "no kind %q", kindName)
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
	g.wantPathBy("", from, to, want)
}

// wantPathBy names the rule that the path shows.
func (g *garden) wantPathBy(rule, from, to string, want bool) {
	g.t.Helper()
	expect.Equal(g.t, g.leads(from, to), want, "%s: %s leads to %s", rule, from, to)
}

// secret leads to a Secret in namespace garden.
func secret(name string) builders.Reference { return builders.Ref("Secret", "garden/"+name) }

// web is a Shoot on Seed a with everything that leads somewhere.
func web() *builders.Object {
	return builders.Shoot("garden-dev", "web").UID("1234").Annotated(wellknown.Issuer, wellknown.ManagedIssuer).OnSeed("a").
		SecretBinding("sb").CredentialsBinding("cb").CloudProfile("cp").
		Resource(builders.Ref("Secret", "res-secret"), builders.Ref("ConfigMap", "res-config"), builders.Ref("WorkloadIdentity", "res-identity"), builders.Ref("Unsupported", "x")).
		DNSProvider(builders.Ref("Secret", "dns1")).DNSProvider(builders.Ref("WorkloadIdentity", "dns2")).
		AuditPolicy("audit").Authentication("authn").Authorization("authz").Authorizer("x", "authz-kubeconfig")
}

// seedA is a Seed with everything that leads to it.
func seedA() *builders.Object {
	return builders.Seed("a").
		With("spec.backup.credentialsRef", secret("backup")).With("spec.dns.provider.credentialsRef", secret("dns-provider")).With("spec.dns.internal.credentialsRef", secret("dns-internal")).
		Add("spec.dns.defaults", map[string]any{"credentialsRef": secret("dns-default-1")}, map[string]any{"credentialsRef": secret("dns-default-2")}).
		Resource(builders.Ref("Secret", "res"))
}

// child is a ManagedSeed whose gardenlet joins in a way.
func child(mode string) *builders.Object {
	return builders.ManagedSeed("garden", "child", "child-shoot").Bootstrap(mode).
		SeedSpec("backup.secretRef", builders.At("garden/child-backup")).SeedSpec("resources", []any{map[string]any{"resourceRef": builders.Ref("Secret", "child-resource")}})
}

// childSeed is its Seed, with a certificate until some time.
func childSeed(expires string) *builders.Object { return expiring("child", expires) }

func expiring(seed, expires string) *builders.Object {
	return builders.Seed(seed).With("status.clientCertificateExpirationTimestamp", expires)
}

// gardenletA is the Gardenlet of Seed a.
func gardenletA() *builders.Object {
	return builders.Gardenlet("garden", "a").Pulls("pull", "ca").SeedSpec("backup.credentialsRef", secret("gardenlet-backup"))
}

// renewing has a gardenlet join again.
func renewing(o *builders.Object) *builders.Object {
	return o.Annotated(wellknown.Operation, wellknown.RenewKubeconfig)
}

// bucket, entry and installation are on Seed a.
func bucket() *builders.Object {
	return builders.BackupBucket("b").OnSeed("a").With("spec.credentialsRef", secret("creds")).With("status.generatedSecretRef", builders.At("garden/generated-bucket-b"))
}

func entry() *builders.Object {
	return builders.BackupEntry("garden-dev", "e", "b").OnSeed("a").OwnedBy("Other", "o").OwnedBy("Shoot", "web")
}

func installation() *builders.Object {
	return builders.ControllerInstallation("i", "r").With("spec.deploymentRef.name", "d").With("spec.seedRef.name", "a").With("spec.shootRef", builders.At("garden/s"))
}

// bootstrapping is the ServiceAccount that a gardenlet joins with.
func bootstrapping(seed string, secrets ...string) *builders.Object {
	return builders.ServiceAccount("garden", wellknown.BootstrapServiceAccount+seed, secrets...)
}
