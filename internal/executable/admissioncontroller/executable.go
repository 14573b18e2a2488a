package admissioncontroller

import (
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/executable/manifests"
	"github.com/espalier-project/espalier/internal/feature"
)

// Executable returns the input for printing manifests; the functions add the flags that lead to a configuration, and
// read it.
func Executable(flags func(*pflag.FlagSet), read func(*pflag.FlagSet) (*configuration, error)) manifests.Executable[configuration, *Process] {
	return manifests.Executable[configuration, *Process]{
		Name: "admission-controller", Account: "kube-system/gardener-admission-controller", Clusters: []feature.Cluster{feature.Garden},
		Rows: Table(), Flags: flags, Configuration: read, Registers: registerDoubles,
		Everything: func() *configuration { return turned(true) }, Least: func() *configuration { return turned(false) },
	}
}
