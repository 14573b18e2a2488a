// node-agent-authorizer decides what the agents of a shoot's nodes may do, for one shoot or for many.
package main

import (
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
)

func main() {
	var flags process.ConfigFlags
	process.Main(process.Command{
		Name:  "node-agent-authorizer",
		Short: "Decide what the agents of a shoot's nodes may do",
		Flags: flags.Add,
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) {
			cfg, warnings, err := configuration(&flags)
			if err != nil {
				return logr.Discard(), nil, err
			}
			log := process.NewLogger(cfg.LogLevel, cfg.LogFormat, os.Stderr)
			for _, warning := range warnings {
				log.Info("Configuration: " + warning)
			}
			return log, func() error { return run(cfg, log) }, nil
		},
	})
}

// configuration reads, defaults and validates the configuration. A resource-manager's is accepted, too (NAA-2).
func configuration(flags *process.ConfigFlags) (*config.NodeAgentAuthorizerConfiguration, []string, error) {
	cfg, warnings, err := read(flags)
	if err != nil {
		return nil, nil, err
	}
	config.SetDefaults(cfg)
	if err := config.Validate(cfg).ToAggregate(); err != nil {
		return nil, nil, err
	}
	return cfg, warnings, nil
}
