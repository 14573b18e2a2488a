// admission-controller decides in the garden cluster what the gardenlet and the extensions of each seed may do.
package main

import (
	"github.com/espalier-project/espalier/internal/commandline/admissioncontroller"
	"github.com/espalier-project/espalier/internal/process"
)

func main() { process.Main(admissioncontroller.Command()) }
