// docgen writes the reference pages that are made from tables in the code, and the picture in the comment of package relation.
//
//	go run ./internal/docgen graph > docs/reference/graph.md
package main

import (
	"fmt"
	"os"

	"github.com/espalier-project/espalier/internal/authorizer/garden"
	"github.com/espalier-project/espalier/internal/authorizer/nodeagent"
	"github.com/espalier-project/espalier/internal/features/resourcemanager"
	"github.com/espalier-project/espalier/internal/relation"
)

func main() {
	pages := map[string]func() string{"graph": relation.Reference, "relation-doc": relation.PackageComment, "seed-authorizer-rules": garden.SeedReference, "shoot-authorizer-rules": garden.ShootReference, "node-agent-rules": nodeagent.Reference, "resource-manager-features": resourcemanager.Reference}
	if len(os.Args) != 2 || pages[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: docgen graph | relation-doc | seed-authorizer-rules | shoot-authorizer-rules | node-agent-rules | resource-manager-features")
		os.Exit(2)
	}
	fmt.Print(pages[os.Args[1]]())
}
