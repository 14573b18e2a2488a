// Package resourcemanager has the command line of resource-manager: flags, configuration and verbs.
package resourcemanager

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
)

// Command is the command of the executable.
func Command() process.Command {
	flags := options{ConfigFlags: &process.ConfigFlags{}}
	return process.Command{
		Name: "resource-manager", Short: "Apply ManagedResources to a target cluster and repair drift", Long: long, Smallest: smallest,
		Environment: environment, Documents: documents, Subcommands: subcommands(), Flags: flags.add,
		Prepare: func(set *pflag.FlagSet) (logr.Logger, func() error, error) {
			cfg, warnings, err := flags.configuration(set)
			if err != nil {
				return logr.Discard(), nil, err
			}
			log := process.Logger(cfg.LogLevel, cfg.LogFormat, warnings)
			return log, func() error { return run(cfg, log) }, nil
		},
	}
}

// format is the format of the configuration file.
var format = process.FileFormat{APIVersion: config.APIVersion, Kind: config.Kind, Aliases: config.Aliases, Profiles: config.Profiles}

// subcommands returns the verbs that validate a configuration, and that print what the table of features has for it.
func subcommands() []process.Subcommand {
	flags := &options{ConfigFlags: &process.ConfigFlags{}}
	configuration := func(set *pflag.FlagSet) (*config.ResourceManagerConfiguration, error) {
		cfg, _, err := flags.configuration(set)
		return cfg, err
	}
	return append([]process.Subcommand{process.ValidateConfig(readConfig), takeover()}, resourcemanager.Executable(flags.add, configuration).Subcommands()...)
}

// readConfig reads the file that validate-config checks.
func readConfig(file *process.ConfigFlags) (any, []string, error) {
	o := options{ConfigFlags: file, anywhere: true}
	return o.configuration(nil)
}

// takeover returns the verb that prints what the first pass would write.
func takeover() process.Subcommand {
	flags := options{ConfigFlags: &process.ConfigFlags{}, anywhere: true}
	return process.Takeover("resource-manager", flags.add, flags.rehearse)
}

func (o *options) rehearse(ctx context.Context, set *pflag.FlagSet, r *process.DryRun) error {
	cfg, _, err := o.configuration(set)
	if err != nil {
		return err
	}
	return resourcemanager.Rehearse(ctx, cfg, r)
}

// options are the options of the command line.
type options struct {
	*process.ConfigFlags
	// anywhere is set if the configuration is for a Pod, but may be read on another machine.
	anywhere              bool
	extraTargetNamespaces []string
	old                   oldFlags
}

func (o *options) add(flags *pflag.FlagSet) {
	o.Add(flags)
	flags.StringArrayVar(&o.extraTargetNamespaces, "extra-target-namespace", nil, "further namespace of the target to watch; may be repeated")
	o.old.add(flags)
}

// configuration reads, defaults, overrides and validates the configuration (CFG-4).
func (o *options) configuration(flags *pflag.FlagSet) (*config.ResourceManagerConfiguration, []string, error) {
	cfg := &config.ResourceManagerConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: config.APIVersion, Kind: config.Kind}}
	var warnings []string
	var err error
	switch {
	case o.File != "":
		warnings, err = o.Read(format, cfg)
	case o.old.used(flags):
		if warnings, err = o.ReadDefaults(format, cfg); err == nil {
			o.old.setDefaults(cfg)
		}
	default:
		err = process.ErrNoConfig
	}
	if cfg.LeaderElection.ResourceNamespace == "" {
		cfg.LeaderElection.ResourceNamespace = process.InClusterNamespace()
	}
	// The old flags set values that other defaults depend on, such as whether a controller is enabled.
	warnings = append(warnings, o.old.apply(flags, cfg)...)
	config.SetDefaults(cfg)
	if len(o.extraTargetNamespaces) > 0 {
		if len(cfg.TargetClientConnection.Namespaces) == 0 {
			warnings = append(warnings, "--extra-target-namespace has no effect: all namespaces are watched")
		} else {
			for _, namespace := range o.extraTargetNamespaces {
				cfg.TargetClientConnection.AddNamespace(namespace)
			}
		}
	}
	process.FromEnvironment(&cfg.SourceClientConnection.Kubeconfig, sourceVariable)
	process.FromEnvironment(&cfg.TargetClientConnection.Kubeconfig, targetVariable)
	errs := config.Validate(cfg)
	if namespace := "leaderElection.resourceNamespace"; o.anywhere {
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
			found := e.Field == namespace && e.Type == field.ErrorTypeRequired
			if found {
				warnings = append(warnings, namespace+" is not set: a Pod takes its own namespace, elsewhere nothing starts")
			}
			return found
		})
	}
	if err := process.Faults(err, errs); err != nil {
		return nil, warnings, err
	}
	return cfg, warnings, nil
}
