// kubectl-espalier is the client: a plugin of kubectl with commands about live objects.
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
	if filepath.Base(os.Args[0]) == kubectl.Completer { // kubectl runs this name for completion.
		os.Args = slices.Insert(os.Args, 1, cobra.ShellCompRequestCmd)
	}
	process.Main(kubectl.Command())
}
