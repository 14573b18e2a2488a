package main

// module is the path of the project.
const module = "github.com/espalier-project/espalier/"

// layer has packages that may import packages of lower layers, and of no higher one.
type layer struct {
	name string
	// folders have the packages of the layer; "/..." means with everything below.
	folders []string
	// shared are packages that others of the layer may import. Otherwise a package imports nothing of its own layer, except
	// from a folder below its own.
	shared []string
	// together is true if all packages of the layer may import each other.
	together bool
	// without are prefixes of third-party packages that the layer may not import, except those in except.
	without, except []string
}

var (
	clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
	outside = append([]string{"net/http", "os"}, clients...)
	// Packages of clients that have types only.
	types = []string{"k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/util/jsonpath"}
)

// layers are ordered from the lowest. A package without a layer fails the check.
// Packages of one folder may be in several layers: the first layer that lists a package counts, so that the domain packages of a controller
// stay pure.
var layers = []layer{
	{name: "api", folders: []string{"api/..."}, together: true, without: clients},
	{name: "manifests", folders: []string{"deploy/..."}},
	{name: "external", folders: []string{"internal/externalapi/..."}, together: true, without: clients},
	{name: "graph", folders: []string{"internal/graph"}, without: append([]string{"k8s.io"}, outside...)},
	{
		name: "domain", together: true, without: outside, except: types,
		folders: []string{
			"internal/ratelimit/...",
			"internal/plaintext",
			"internal/managedresource/decode",
			"internal/managedresource/meta",
			"internal/managedresource/schema",
			"internal/managedresource/hold",
			"internal/managedresource/plan", "internal/managedresource/brake",
			"internal/managedresource/merge",
			"internal/managedresource/healthcheck",
			"internal/managedresource/inspect",
			"internal/managedresource/objects", "internal/managedresource/ownership", "internal/managedresource/lifecycle",
			"internal/seedauthorizer/relation",
			"internal/seedauthorizer/identity",
			"internal/nodeagentauthorizer/agent",
			"internal/controller/csrapprover/csr",
			"internal/controller/garbagecollector/references",
			"internal/controller/istioclusterconfiguration/envoyfilter",
			"internal/controller/namespaced",
			"internal/controller/networkpolicy/desired",
			"internal/controller/node",
			"internal/controller/tokeninvalidator/invalidation",
			"internal/controller/tokenrequestor/token",
			"internal/webhook/referrers",
			"internal/webhook/zones",
		},
	},
	{name: "vocabulary", folders: []string{"internal/feature"}, without: []string{"net/http", "k8s.io/client-go"}},
	{
		name: "access", together: true,
		folders: []string{
			"internal/cluster/...",
			"internal/reflector",
			"internal/cluster/readthrough",
			"internal/marked",
			"internal/crdwatch",
			"internal/selectors",
			"internal/dryrun",
			"internal/managedresource/target",
			"internal/managedresource/source",
			"internal/seedauthorizer/garden",
			"internal/seedauthorizer/dump",
			"internal/nodeagentauthorizer/view",
		},
	},
	{name: "endpoints", folders: []string{"internal/endpoint/..."}, together: true},
	{name: "steps", folders: []string{"internal/managedresource/steps", "internal/controller/kit"}, shared: []string{"internal/controller/kit"}},
	{name: "apply and prune", folders: []string{"internal/managedresource/apply", "internal/managedresource/prune"}},
	{
		name: "decisions", shared: []string{"internal/webhook/configref"},
		folders: []string{
			"internal/managedresource/controller",
			"internal/managedresource/health",
			"internal/seedauthorizer/rules",
			"internal/seedauthorizer/restriction",
			"internal/nodeagentauthorizer/rules",
			"internal/controller/...",
			"internal/webhook/...",
		},
	},
	{name: "engine", folders: []string{"internal/managedresource/engine", "internal/seedauthorizer/debug", "internal/seedauthorizer/replay", "internal/nodeagentauthorizer/tenants"}},
	{name: "process", folders: []string{"internal/process"}},
	{name: "verbs", folders: []string{"internal/kubectl"}},
	{name: "features", folders: []string{"internal/executable/..."}, shared: []string{"internal/executable/agents", "internal/executable/manifests"}},
	{name: "command lines", folders: []string{"internal/commandline/..."}},
	{name: "executables", folders: []string{"cmd/...", "internal/client/...", "internal/gen/..."}, shared: []string{"internal/gen/reference"}},
	{name: "tests", folders: []string{"test/..."}, together: true},
}
