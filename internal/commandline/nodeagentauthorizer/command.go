// Package nodeagentauthorizer has the command line of node-agent-authorizer: flags, configuration and verbs.
package nodeagentauthorizer

import (
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/process"
)

// Command is the command of the executable.
func Command() process.Command {
	var flags process.ConfigFlags
	return process.Command{
		Name: "node-agent-authorizer", Short: "Authorize the agents of a shoot's nodes", Long: long, Smallest: smallest,
		Environment: environment, Documents: documents, Flags: flags.Add,
		CommonIn:    "resource-manager",
		Subcommands: append([]process.Subcommand{process.ValidateConfig(readConfig)}, subcommands()...),
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) {
			cfg, warnings, err := configuration(&flags)
			if err != nil {
				return logr.Discard(), nil, err
			}
			log := process.Logger(cfg.LogLevel, cfg.LogFormat, warnings)
			return log, func() error { return run(cfg, log) }, nil
		},
	}
}

// subcommands returns the verbs that print what the table of features has for a configuration.
func subcommands() []process.Subcommand {
	flags := &process.ConfigFlags{}
	return nodeagentauthorizer.Executable(flags.Add, func(*pflag.FlagSet) (*config.NodeAgentAuthorizerConfiguration, error) {
		cfg, _, err := configuration(flags)
		return cfg, err
	}).Subcommands()
}

// readConfig reads the file that validate-config checks.
func readConfig(file *process.ConfigFlags) (any, []string, error) {
	return configuration(file)
}

// configuration reads, defaults and validates the configuration. A resource-manager's file is also accepted (NAA-2).
func configuration(flags *process.ConfigFlags) (*config.NodeAgentAuthorizerConfiguration, []string, error) {
	cfg := &config.NodeAgentAuthorizerConfiguration{}
	warnings, err := flags.Read(format, cfg)
	config.SetDefaults(cfg)
	process.FromEnvironment(&cfg.SourceClientConnection.Kubeconfig, "KUBECONFIG")
	process.FromEnvironment(&cfg.TargetClientConnection.Kubeconfig, "TARGET_KUBECONFIG")
	if err := process.Faults(err, config.Validate(cfg)); err != nil {
		return nil, warnings, err
	}
	return cfg, warnings, nil
}
