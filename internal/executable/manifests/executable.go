package manifests

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// Executable has the parts of an executable that the commands print.
type Executable[C, E any] struct {
	// Name of the executable; its ServiceAccount and its webhook configurations have it with the prefix "gardener-" by default.
	Name string
	// Account is its usual ServiceAccount, as <namespace>/<name>.
	Account string
	// Clusters are the clusters that it has rights in.
	Clusters []feature.Cluster
	// Rows are its features.
	Rows []feature.Row[C, E]
	// Namespaces returns the namespaces that a configuration restricts it to, by cluster; nil if it restricts no
	// cluster.
	Namespaces func(*C) map[feature.Cluster][]string
	// Flags adds the flags that lead to the configuration, and Configuration reads it.
	Flags         func(*pflag.FlagSet)
	Configuration func(*pflag.FlagSet) (*C, error)
	// Everything returns a configuration with all that there is switched on, and Least one with all switched off that can be.
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
