package manifests

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// Executable describes an executable for the commands.
type Executable[C, E any] struct {
	// Name is the name of the executable. Its ServiceAccount and its webhook configurations have it with the prefix
	// "gardener-" by default.
	Name string
	// Account is the default ServiceAccount, as <namespace>/<name>.
	Account string
	// Clusters are the clusters in which the executable has permissions.
	Clusters []feature.Cluster
	// Rows are the features of the executable.
	Rows []feature.Row[C, E]
	// Namespaces returns the namespaces to which a configuration restricts the executable, by cluster; nil means no
	// restriction.
	Namespaces func(*C) map[feature.Cluster][]string
	// Flags adds the flags for the configuration, and Configuration reads it.
	Flags         func(*pflag.FlagSet)
	Configuration func(*pflag.FlagSet) (*C, error)
	// Everything returns a configuration with all switches on, and Least one with all switches off that can be.
	Everything, Least func() *C
	// Registers, if set, registers metrics of the process in addition to those of the features and of all processes.
	Registers func(prometheus.Registerer)
	// Places is set if registrations depend on the kind of cluster that they are for.
	Places bool
}

// Subcommands are the commands of an executable: webhooks only if it has any.
func (x Executable[C, E]) Subcommands() []process.Subcommand {
	commands := []process.Subcommand{x.Rights()}
	for _, row := range x.Rows {
		if row.Mutating != nil || row.Validating != nil {
			return append(commands, x.Webhooks())
		}
	}
	return commands
}
