// docgen writes the reference pages that are made from tables in the code, and the picture in the comment of package relation.
//
//	go run ./internal/docgen graph > docs/reference/graph.md
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/authorizer/garden"
	"github.com/espalier-project/espalier/internal/authorizer/nodeagent"
	"github.com/espalier-project/espalier/internal/features/admissioncontroller"
	"github.com/espalier-project/espalier/internal/features/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/features/resourcemanager"
	"github.com/espalier-project/espalier/internal/relation"
)

func main() {
	pages := map[string]func() string{
		"graph": relation.Reference, "relation-doc": relation.PackageComment,
		"seed-authorizer-rules": garden.SeedReference, "shoot-authorizer-rules": garden.ShootReference, "node-agent-rules": nodeagent.Reference,
		"resource-manager-features": resourcemanager.Reference, "admission-controller-features": admissioncontroller.Reference,
		"node-agent-authorizer-features": nodeagentauthorizer.Reference,
	}
	if len(os.Args) != 2 || pages[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: docgen "+strings.Join(slices.Sorted(maps.Keys(pages)), " | "))
		os.Exit(2)
	}
	fmt.Print(pages[os.Args[1]]())
}
