// node-agent-authorizer decides what the agents of a shoot's nodes may do, for one shoot or for many.
package main

import (
	"errors"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
)

func main() {
	var flags options
	process.Main(process.Command{
		Name:  "node-agent-authorizer",
		Short: "Decide what the agents of a shoot's nodes may do",
		Flags: flags.add,
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) {
			cfg, warnings, err := flags.configuration()
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

// options are the command line.
type options struct {
	configFile string
	strict     bool
}

func (o *options) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.configFile, "config", "", "path of the configuration file")
	flags.BoolVar(&o.strict, "strict-config", false, "take unknown keys of the configuration file for errors, not for warnings")
}

// configuration reads, defaults and validates the configuration. A resource-manager's is accepted, too (NAA-2).
func (o *options) configuration() (*config.NodeAgentAuthorizerConfiguration, []string, error) {
	if o.configFile == "" {
		return nil, nil, errors.New("missing config file")
	}
	cfg, warnings, err := o.read()
	if err != nil {
		return nil, nil, err
	}
	config.SetDefaults(cfg)
	if err := config.Validate(cfg).ToAggregate(); err != nil {
		return nil, nil, err
	}
	return cfg, warnings, nil
}
