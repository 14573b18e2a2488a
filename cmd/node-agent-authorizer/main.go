// node-agent-authorizer decides what the agents of a shoot's nodes may do, for one shoot or for many.
package main

import (
	"github.com/espalier-project/espalier/internal/commandline/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/process"
)

func main() { process.Main(nodeagentauthorizer.Command()) }
