// resource-manager keeps what ManagedResources of the source cluster describe in the target cluster.
package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/kubectl"
	"github.com/espalier-project/espalier/internal/process"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case kubectl.Executable:
		process.Main(kubectl.Command())
	case kubectl.Completer: // kubectl has it complete the arguments of kubectl espalier.
		os.Args = slices.Insert(os.Args, 1, cobra.ShellCompRequestCmd)
		process.Main(kubectl.Command())
	default:
		process.Main(resourcemanager.Command())
	}
}
