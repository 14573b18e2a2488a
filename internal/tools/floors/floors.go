package main

// module is the path of the project.
const module = "github.com/espalier-project/espalier/"

// floor is one of the house. Its packages may import packages of the floors below, and nothing above.
type floor struct {
	name string
	// rooms are folders of packages; "/..." means with everything below.
	rooms []string
	// shared are rooms of the floor that the others on it may import. Otherwise an import never goes sideways, but from a folder to one below it.
	shared []string
	// together says that all rooms of the floor may import each other.
	together bool
	// without are packages of others that have no place here, by prefix, but for those in except.
	without, except []string
}

var (
	clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}
	outside = append([]string{"net/http", "os"}, clients...)
	// schemes are types alone; so is the interface of all objects.
	types = []string{"k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/util/jsonpath"}
)

// house are the floors from the ground up. A package that is in no room fails the check, so that each new one is given its place.
// A folder of internal may have rooms on several floors: the lowest that lists a room counts, so that the domain rooms of a controller stay pure.
var house = []floor{
	{name: "api", rooms: []string{"api/..."}, together: true, without: clients},
	{name: "manifests", rooms: []string{"deploy/..."}},
	{name: "external", rooms: []string{"internal/externalapi/..."}, together: true, without: clients},
	{name: "graph", rooms: []string{"internal/graph"}, without: append([]string{"k8s.io"}, outside...)},
	{
		name: "domain", together: true, without: outside, except: types,
		rooms: []string{
			"internal/ratelimit/...",
			"internal/plaintext",
			"internal/kinds",
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
	{name: "vocabulary", rooms: []string{"internal/feature"}, without: []string{"net/http", "k8s.io/client-go"}},
	{
		name: "access", together: true,
		rooms: []string{
			"internal/cluster/...",
			"internal/reflector",
			"internal/cluster/readthrough",
			"internal/marked",
			"internal/crdwatch",
			"internal/selectors",
			"internal/shadow",
			"internal/managedresource/target",
			"internal/managedresource/source",
			"internal/seedauthorizer/garden",
			"internal/seedauthorizer/dump",
			"internal/nodeagentauthorizer/view",
		},
	},
	{name: "endpoints", rooms: []string{"internal/endpoint/..."}, together: true},
	{
		name: "decisions", shared: []string{"internal/controller/kit", "internal/webhook/configref"},
		rooms: []string{
			"internal/managedresource/controller",
			"internal/managedresource/health",
			"internal/seedauthorizer/rules",
			"internal/seedauthorizer/restriction",
			"internal/nodeagentauthorizer/rules",
			"internal/controller/...",
			"internal/webhook/...",
		},
	},
	{name: "engine", rooms: []string{"internal/managedresource/engine", "internal/seedauthorizer/debug", "internal/seedauthorizer/replay", "internal/nodeagentauthorizer/tenants"}},
	{name: "process", rooms: []string{"internal/process"}},
	{name: "verbs", rooms: []string{"internal/kubectl"}},
	{name: "features", rooms: []string{"internal/executable/..."}, shared: []string{"internal/executable/agents", "internal/executable/manifests"}},
	{name: "command lines", rooms: []string{"internal/commandline/..."}},
	{name: "executables", rooms: []string{"cmd/...", "internal/client/...", "internal/gen/..."}, shared: []string{"internal/gen/reference"}},
	{name: "tests", rooms: []string{"test/..."}, together: true},
}
