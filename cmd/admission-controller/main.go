// admission-controller decides in the garden cluster what the gardenlet and the extensions of each seed may do.
package main

import (
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
)

func main() {
	var flags process.ConfigFlags
	process.Main(process.Command{
		Name:  "admission-controller",
		Short: "Decide in the garden cluster what seeds may do",
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

// configuration reads, defaults and validates the configuration (CFG-4).
func configuration(flags *process.ConfigFlags) (*config.AdmissionControllerConfiguration, []string, error) {
	cfg := &config.AdmissionControllerConfiguration{}
	warnings, err := flags.Read(process.FileFormat{APIVersion: config.APIVersion, Kind: config.Kind, Aliases: config.Aliases}, cfg)
	if err != nil {
		return nil, nil, err
	}
	config.SetDefaults(cfg)
	if err := config.Validate(cfg).ToAggregate(); err != nil {
		return nil, nil, err
	}
	return cfg, warnings, nil
}
