package nodeagentauthorizer

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanager "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
)

// format is the format of the configuration file. A resource-manager's file is also accepted (NAA-2).
var format = process.FileFormat{
	APIVersion: config.APIVersion, Kind: config.Kind, Profiles: config.Profiles,
	Converted: map[string]func([]byte, bool) (any, []string, error){resourcemanager.Kind: fromResourceManager},
}

// fromResourceManager returns the parts of a resource-manager's configuration that the authorizer uses.
func fromResourceManager(content []byte, strict bool) (any, []string, error) {
	file := &resourcemanager.ResourceManagerConfiguration{}
	format := process.FileFormat{APIVersion: resourcemanager.APIVersion, Kind: resourcemanager.Kind, Aliases: resourcemanager.Aliases, Strict: strict}
	warnings, err := process.DecodeConfig(content, format, file)
	if err != nil {
		return nil, warnings, err
	}
	connection := func(c *shared.ClientConnection) config.ClientConnection {
		if c == nil {
			return config.ClientConnection{}
		}
		return config.ClientConnection{Kubeconfig: c.Kubeconfig, QPS: c.QPS, Burst: c.Burst}
	}
	agents := file.Webhooks.NodeAgentAuthorizer
	var shadow *config.Shadow
	if s := agents.Shadow; s != nil {
		shadow = &config.Shadow{AuthorizeWithSelectors: s.AuthorizeWithSelectors, Nodes: config.ShadowNodes(s.Nodes)}
	}
	return &config.NodeAgentAuthorizerConfiguration{
		TypeMeta:               metav1.TypeMeta{APIVersion: config.APIVersion, Kind: config.Kind},
		SourceClientConnection: connection(&file.SourceClientConnection), TargetClientConnection: connection(file.TargetClientConnection),
		Server:    config.ServerConfiguration{Webhooks: file.Server.Webhooks, HealthProbes: file.Server.HealthProbes, Metrics: file.Server.Metrics},
		Debugging: file.Debugging, LogLevel: file.LogLevel, LogFormat: file.LogFormat,
		Agents: config.Agents{
			MachineNamespace:       agents.MachineNamespace,
			AuthorizeWithSelectors: config.Selectors(strconv.FormatBool(ptr.Deref(agents.AuthorizeWithSelectors, false))),
			Nodes:                  config.NodesConfiguration(agents.Nodes),
			Shadow:                 shadow,
		},
		MaxStaleness: agents.MaxStaleness,
	}, warnings, nil
}
