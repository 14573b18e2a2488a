// resource-manager keeps what ManagedResources of the source cluster describe in the target cluster.
package main

import (
	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
)

func main() { process.Main(resourcemanager.Command()) }
