// Package admissioncontroller has the command line of admission-controller: flags, configuration and verbs.
package admissioncontroller

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/process"
)

// Command is the command of the executable.
func Command() process.Command {
	var flags process.ConfigFlags
	return process.Command{
		Name: "admission-controller", Short: "Authorize the clients of seeds in the garden cluster", Long: long, Smallest: smallest,
		Environment: environment, Documents: documents, Flags: flags.Add,
		CommonIn: "resource-manager",
		Subcommands: append([]process.Subcommand{
			process.ValidateConfig(readConfig), takeover(), admissioncontroller.Dump(), replay(),
		}, subcommands()...),
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

// takeover returns the verb that prints what the process would write after its start.
func takeover() process.Subcommand {
	flags := &process.ConfigFlags{}
	return process.Takeover("admission-controller", flags.Add, func(ctx context.Context, _ *pflag.FlagSet, r *process.DryRun) error {
		cfg, _, err := configuration(flags)
		if err != nil {
			return err
		}
		return admissioncontroller.Rehearse(ctx, cfg, r)
	})
}

// replay returns the verb that repeats the decisions of audit logs.
func replay() process.Subcommand {
	flags := &process.ConfigFlags{}
	return admissioncontroller.Replay(flags.Add, func(file string) (*config.AdmissionControllerConfiguration, error) {
		cfg, _, err := completed(flags.With(file).ReadOrDefaults)
		return cfg, err
	})
}

// readConfig reads the file that validate-config checks.
func readConfig(file *process.ConfigFlags) (any, []string, error) {
	return configuration(file)
}

// format is the format of the configuration file.
var format = process.FileFormat{
	APIVersion: config.APIVersion, Kind: config.Kind, Aliases: config.Aliases,
	Profiles: config.Profiles,
}

// subcommands returns the verbs that print what the table of features has for a configuration.
func subcommands() []process.Subcommand {
	flags := &process.ConfigFlags{}
	return admissioncontroller.Executable(flags.Add, func(*pflag.FlagSet) (*config.AdmissionControllerConfiguration, error) {
		cfg, _, err := configuration(flags)
		return cfg, err
	}).Subcommands()
}

// configuration reads, defaults and validates the configuration (CFG-4).
func configuration(flags *process.ConfigFlags) (*config.AdmissionControllerConfiguration, []string, error) {
	return completed(flags.Read)
}

func completed(read func(process.FileFormat, any) ([]string, error)) (*config.AdmissionControllerConfiguration, []string, error) {
	cfg := &config.AdmissionControllerConfiguration{}
	warnings, err := read(format, cfg)
	config.SetDefaults(cfg)
	process.FromEnvironment(&cfg.GardenClientConnection.Kubeconfig, "KUBECONFIG")
	if err := process.Faults(err, config.Validate(cfg)); err != nil {
		return nil, warnings, err
	}
	return cfg, warnings, nil
}
