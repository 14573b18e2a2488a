// resource-manager applies the objects of the source cluster's ManagedResources to the target cluster, and keeps them
// there.
package main

import (
	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
)

func main() { process.Main(resourcemanager.Command()) }
