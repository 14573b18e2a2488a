package main

import (
	"reflect"
	"strings"

	admissioncontroller "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	nodeagentauthorizer "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanager "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	older "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	admits "github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	agents "github.com/espalier-project/espalier/internal/executable/nodeagentauthorizer"
	manages "github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/feature"
)

// executable has the properties of an executable that a chart needs.
type executable struct {
	facts
	// config is the type of the configuration.
	config reflect.Type
	// dropped are keys that have no effect any more.
	dropped []older.Alias
	// copies are files below deploy that are copied into the chart.
	copies []string
	err    error
}

// facts are written into the chart, for its templates.
type facts struct {
	Executable string `json:"executable"`
	// Config is the default configuration, as far as the chart needs it.
	Config map[string]any `json:"config"`
	// Elects is set if the configuration has an election, whose Lease is in the namespace of the release.
	Elects bool `json:"elects"`
	// Connections are the connections to clusters that the configuration has.
	Connections []connection `json:"connections"`
	// WebhooksOf is the cluster whose API server calls the webhooks.
	WebhooksOf feature.Cluster `json:"webhooksOf"`
	// Base are the namespaces to which most webhooks apply, by mode, if the values name none.
	Base map[string]any `json:"base"`
	// Aliases are older keys of the configuration that rights may depend on.
	Aliases []alias `json:"aliases"`
	// Needed are the paths of values that must be set.
	Needed   []string       `json:"needed"`
	Features []featureFacts `json:"features"`
}

type connection struct {
	Cluster feature.Cluster `json:"cluster"`
	// Path is the section of the configuration.
	Path string `json:"path"`
	// Unless is the field that, if it is set, selects another cluster regardless of the section.
	Unless string `json:"unless"`
}

type alias struct {
	Old          string   `json:"old"`
	New          string   `json:"new"`
	EmptyIsUnset []string `json:"emptyIsUnset"`
}

// featureFacts are the facts about a row of the table.
type featureFacts struct {
	Name     string     `json:"name"`
	Switch   string     `json:"switch"`
	Rights   []right    `json:"rights"`
	Webhooks []hookFact `json:"webhooks"`
}

// name sets the older keys of an executable's configuration.
func (e *executable) name(aliases []older.Alias) {
	for _, a := range aliases {
		if a.New == "" {
			e.dropped = append(e.dropped, a)
		} else {
			e.Aliases = append(e.Aliases, alias{a.Old, a.New, a.EmptyIsUnset})
		}
	}
}

// ports returns the ports of a defaulted configuration.
func ports(webhooks, health, metrics int) map[string]any {
	port := func(n int) map[string]any { return map[string]any{"port": n} }
	return map[string]any{"webhooks": port(webhooks), "healthProbes": port(health), "metrics": port(metrics)}
}

func executables() []*executable {
	return []*executable{resourceManager(), nodeAgentAuthorizer(), admissionController()}
}

func resourceManager() *executable {
	defaults := &resourcemanager.ResourceManagerConfiguration{}
	resourcemanager.SetDefaults(defaults)
	e := &executable{
		config: reflect.TypeFor[resourcemanager.ResourceManagerConfiguration](),
		copies: []string{"crds/resources.gardener.cloud_managedresources.yaml"},
		facts: facts{
			Executable: "resource-manager", Elects: true, WebhooksOf: feature.Target,
			Config: map[string]any{
				"apiVersion": resourcemanager.APIVersion, "kind": resourcemanager.Kind,
				"server": ports(defaults.Server.Webhooks.Port, defaults.Server.HealthProbes.Port, defaults.Server.Metrics.Port),
			},
			Connections: []connection{{Cluster: feature.Source, Path: "sourceClientConnection"}, {Cluster: feature.Target, Path: "targetClientConnection"}},
			Base:        map[string]any{"runtime": feature.Installation{}.Namespaces(), "shoot": feature.Installation{Shoot: true}.Namespaces()},
		},
	}
	table := table[resourcemanager.ResourceManagerConfiguration]{
		setDefaults: resourcemanager.SetDefaults,
		// The chart always sets these.
		prepare: func(c *resourcemanager.ResourceManagerConfiguration) {
			c.LeaderElection.ResourceName, c.LeaderElection.ResourceNamespace = reference("leaderElection.resourceName"), reference("leaderElection.resourceNamespace")
		},
		meanings: map[string][]string{"controllers.clusterID": {resourcemanager.ClusterIDFromCluster, resourcemanager.ClusterIDDefault}},
	}
	e.name(resourcemanager.Aliases)
	e.Features, e.err = describe(table, manages.Table())
	return e
}

func nodeAgentAuthorizer() *executable {
	type configuration = nodeagentauthorizer.NodeAgentAuthorizerConfiguration
	defaults := &configuration{}
	nodeagentauthorizer.SetDefaults(defaults)
	e := &executable{
		config: reflect.TypeFor[configuration](),
		copies: []string{"nodeagentauthorizer/authorization-configuration.yaml", "nodeagentauthorizer/node-agent-authorizer-kubeconfig.yaml"},
		facts: facts{
			Executable: "node-agent-authorizer", WebhooksOf: feature.Target,
			Config: map[string]any{
				"apiVersion": nodeagentauthorizer.APIVersion, "kind": nodeagentauthorizer.Kind,
				"server": ports(defaults.Server.Webhooks.Port, defaults.Server.HealthProbes.Port, defaults.Server.Metrics.Port),
			},
			Connections: []connection{{Cluster: feature.Source, Path: "sourceClientConnection"}, {Cluster: feature.Target, Path: "targetClientConnection", Unless: "shootsDirectory"}},
		},
	}
	e.Features, e.err = describe(table[configuration]{
		setDefaults: nodeagentauthorizer.SetDefaults, prepare: func(*configuration) {},
		meanings: map[string][]string{"authorizeWithSelectors": {string(nodeagentauthorizer.SelectorsAuto)}},
	}, agents.Table())
	return e
}

func admissionController() *executable {
	type configuration = admissioncontroller.AdmissionControllerConfiguration
	defaults := &configuration{}
	admissioncontroller.SetDefaults(defaults)
	e := &executable{
		config: reflect.TypeFor[configuration](),
		copies: []string{"admissioncontroller/authorization-configuration.yaml", "admissioncontroller/seed-authorizer-kubeconfig.yaml", "admissioncontroller/shoot-authorizer-kubeconfig.yaml"},
		facts: facts{
			Executable: "admission-controller", WebhooksOf: feature.Garden,
			Config: map[string]any{
				"apiVersion": admissioncontroller.APIVersion, "kind": admissioncontroller.Kind,
				"server": ports(defaults.Server.Webhooks.Port, defaults.Server.HealthProbes.Port, defaults.Server.Metrics.Port),
			},
			Connections: []connection{{Cluster: feature.Garden, Path: "gardenClientConnection"}},
		},
	}
	e.name(admissioncontroller.Aliases)
	e.Features, e.err = describe(table[configuration]{
		setDefaults: admissioncontroller.SetDefaults, prepare: func(*configuration) {},
		meanings: map[string][]string{"server.seedAuthorizer.references": {string(admissioncontroller.ReferencesChecked)}},
	}, admits.Table())
	return e
}

// reference returns the placeholder, in facts, for the value at a path of the configuration.
func reference(path string) string { return "$(" + path + ")" }

func isReference(text string) bool { return strings.HasPrefix(text, "$(") }
