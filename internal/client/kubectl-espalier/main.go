// kubectl-espalier is the client: it has the verbs about live objects.
package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/espalier-project/espalier/internal/kubectl"
	"github.com/espalier-project/espalier/internal/process"
)

func main() {
	if filepath.Base(os.Args[0]) == kubectl.Completer { // kubectl has it complete the arguments of kubectl espalier.
		os.Args = slices.Insert(os.Args, 1, cobra.ShellCompRequestCmd)
	}
	process.Main(kubectl.Command())
}
