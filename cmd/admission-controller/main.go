// admission-controller decides in the garden cluster what the gardenlet and the extensions of each seed may do.
package main

import (
	"errors"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
)

func main() {
	var flags options
	process.Main(process.Command{
		Name:  "admission-controller",
		Short: "Decide in the garden cluster what seeds may do",
		Flags: flags.add,
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) {
			cfg, warnings, err := flags.configuration()
			if err != nil {
				return logr.Discard(), nil, err
			}
			log := process.NewLogger(cfg.LogLevel, cfg.LogFormat, os.Stderr)
			for _, warning := range append(warnings, notBuiltYet(cfg)...) {
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

// configuration reads, defaults and validates the configuration (CFG-4).
func (o *options) configuration() (*config.AdmissionControllerConfiguration, []string, error) {
	if o.configFile == "" {
		return nil, nil, errors.New("missing config file")
	}
	cfg := &config.AdmissionControllerConfiguration{}
	format := process.FileFormat{APIVersion: config.APIVersion, Kind: config.Kind, Aliases: config.Aliases, Strict: o.strict}
	warnings, err := process.ReadConfig(o.configFile, format, cfg)
	if err != nil {
		return nil, nil, err
	}
	config.SetDefaults(cfg)
	if err := config.Validate(cfg).ToAggregate(); err != nil {
		return nil, nil, err
	}
	return cfg, warnings, nil
}

// notBuiltYet names what is configured and does nothing in this version.
func notBuiltYet(cfg *config.AdmissionControllerConfiguration) []string {
	if len(cfg.Server.ResourceAdmissionConfiguration.Limits) > 0 {
		return []string{"server.resourceAdmissionConfiguration has limits, but this version does not check them yet"}
	}
	return nil
}
