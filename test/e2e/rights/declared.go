package main

import (
	rbacv1 "k8s.io/api/rbac/v1"

	admissioncontrollerconfig "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	nodeagentauthorizerconfig "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanagerconfig "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/executable/manifests"
	"github.com/espalier-project/espalier/internal/executable/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// right is one of a feature.
type right struct {
	executable, feature, cluster, verb string
	// resource is <resource>[/<subresource>][.<group>].
	resource string
}

func (r right) String() string {
	return r.executable + " " + r.feature + " " + r.cluster + " " + r.verb + " " + r.resource
}

// rule is what a feature may do in a scope.
type rule struct {
	executable, feature string
	scope               feature.Scope
	rbacv1.PolicyRule
}

// rights are those that the rule consists of.
func (r *rule) rights() []right {
	var all []right
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				all = append(all, right{r.executable, r.feature, string(r.scope.Cluster), verb, inGroup(resource, group)})
			}
		}
	}
	return all
}

func inGroup(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// executable is one whose rights are known by its configuration.
type executable struct {
	// everything are the rules with all features on; under are those under a configuration file.
	everything func() []rule
	under      func(content []byte) ([]rule, error)
}

var executables = map[string]executable{
	"resource-manager": of(resourcemanager.Executable(nil, nil), resourcemanagerconfig.SetDefaults,
		process.FileFormat{APIVersion: resourcemanagerconfig.APIVersion, Kind: resourcemanagerconfig.Kind, Aliases: resourcemanagerconfig.Aliases}),
	"admission-controller": of(admissioncontroller.Executable(nil, nil), admissioncontrollerconfig.SetDefaults,
		process.FileFormat{APIVersion: admissioncontrollerconfig.APIVersion, Kind: admissioncontrollerconfig.Kind, Aliases: admissioncontrollerconfig.Aliases}),
	"node-agent-authorizer": of(nodeagentauthorizer.Executable(nil, nil), nodeagentauthorizerconfig.SetDefaults,
		process.FileFormat{APIVersion: nodeagentauthorizerconfig.APIVersion, Kind: nodeagentauthorizerconfig.Kind}),
}

func of[C, E any](x manifests.Executable[C, E], setDefaults func(*C), format process.FileFormat) executable {
	rules := func(cfg *C) []rule {
		var all []rule
		for _, row := range feature.Enabled(x.Rows, cfg) {
			alone := x
			alone.Rows = []feature.Row[C, E]{row}
			for scope, few := range alone.RightsOf(cfg) {
				for _, one := range few {
					all = append(all, rule{x.Name, row.Name, scope, one})
				}
			}
		}
		return all
	}
	return executable{
		everything: func() []rule { return rules(x.Everything()) },
		under: func(content []byte) ([]rule, error) {
			cfg := new(C)
			if _, err := process.DecodeConfig(content, format, cfg); err != nil {
				return nil, err
			}
			setDefaults(cfg)
			return rules(cfg), nil
		},
	}
}

// declared are the rights that the features of all executables have.
func declared() []right {
	var all []right
	for _, x := range executables {
		for _, each := range x.everything() {
			all = append(all, each.rights()...)
		}
	}
	return all
}
