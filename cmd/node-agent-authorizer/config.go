package main

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanager "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
)

// format is that of the configuration file. Faults of a resource-manager's are found on the lines of the keys that are taken from it.
var format = process.FileFormat{APIVersion: config.APIVersion, Kind: config.Kind, Aliases: taken()}

func taken() []shared.Alias {
	all := slices.Clone(resourcemanager.Aliases)
	for _, key := range []string{"machineNamespace", "authorizeWithSelectors", "nodes", "maxStaleness"} {
		all = append(all, shared.Alias{Old: "webhooks.nodeAgentAuthorizer." + key, New: key})
	}
	return all
}

// read reads a file of either kind.
func read(flags *process.ConfigFlags) (*config.NodeAgentAuthorizerConfiguration, []shared.Warning, error) {
	content, err := flags.Content()
	if err != nil {
		return nil, nil, err
	}
	var head struct {
		Kind string `json:"kind"`
	}
	// What is no YAML at all is an error of the decoding below.
	if err := yaml.Unmarshal(content, &head); err == nil && head.Kind == resourcemanager.Kind {
		return readResourceManager(content, flags.Strict)
	}
	cfg, own := &config.NodeAgentAuthorizerConfiguration{}, process.FileFormat{APIVersion: config.APIVersion, Kind: config.Kind, Strict: flags.Strict}
	warnings, err := process.DecodeConfig(content, own, cfg)
	if err != nil {
		return nil, warnings, fmt.Errorf("error decoding config: %w", err)
	}
	return cfg, warnings, nil
}

// readResourceManager takes from a resource-manager's configuration what concerns the authorizer, and nothing else.
func readResourceManager(content []byte, strict bool) (*config.NodeAgentAuthorizerConfiguration, []shared.Warning, error) {
	file := &resourcemanager.ResourceManagerConfiguration{}
	format := process.FileFormat{APIVersion: resourcemanager.APIVersion, Kind: resourcemanager.Kind, Aliases: resourcemanager.Aliases, Strict: strict}
	warnings, err := process.DecodeConfig(content, format, file)
	if err != nil {
		return nil, warnings, fmt.Errorf("error decoding config: %w", err)
	}
	connection := func(c *shared.ClientConnection) config.ClientConnection {
		if c == nil {
			return config.ClientConnection{}
		}
		return config.ClientConnection{Kubeconfig: c.Kubeconfig, QPS: c.QPS, Burst: c.Burst}
	}
	agents := file.Webhooks.NodeAgentAuthorizer
	return &config.NodeAgentAuthorizerConfiguration{
		TypeMeta:               metav1.TypeMeta{APIVersion: config.APIVersion, Kind: config.Kind},
		SourceClientConnection: connection(&file.SourceClientConnection), TargetClientConnection: connection(file.TargetClientConnection),
		Server:    config.ServerConfiguration{Webhooks: file.Server.Webhooks, HealthProbes: file.Server.HealthProbes, Metrics: file.Server.Metrics},
		Debugging: file.Debugging, LogLevel: file.LogLevel, LogFormat: file.LogFormat,
		Agents: config.Agents{
			MachineNamespace:       agents.MachineNamespace,
			AuthorizeWithSelectors: config.Selectors(strconv.FormatBool(ptr.Deref(agents.AuthorizeWithSelectors, false))),
			Nodes:                  config.NodesConfiguration(agents.Nodes),
		},
		MaxStaleness: agents.MaxStaleness,
	}, warnings, nil
}
