// docs writes the reference pages that are made from tables in the code, the comment of package relation, and the roles of all executables.
//
//	go run ./internal/gen/docs graph > docs/reference/graph.md
//	go run ./internal/gen/docs rbac deploy/rbac
//	go run ./internal/gen/docs fields api/config/shared/v1alpha1
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/executable/manifests"
	"github.com/espalier-project/espalier/internal/executable/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/feature"
)

func main() {
	pages := map[string]func() string{
		"graph": graphPage, "relation-doc": relationDoc,
		"seed-authorizer-rules": seedRules, "shoot-authorizer-rules": shootRules, "node-agent-rules": nodeAgentRules,
		"resource-manager-features": resourcemanager.Reference, "admission-controller-features": admissioncontroller.Reference,
		"node-agent-authorizer-features": nodeagentauthorizer.Reference, "metrics": metrics, "profiles": profiles,
	}
	maps.Copy(pages, configurations)
	folders := map[string]func(folder string) error{"rbac": rights, "fields": fieldDocs}
	if len(os.Args) == 3 && folders[os.Args[1]] != nil {
		if err := folders[os.Args[1]](os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 2 || pages[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: docs rbac|fields <folder> | "+strings.Join(slices.Sorted(maps.Keys(pages)), " | "))
		os.Exit(2)
	}
	fmt.Print(pages[os.Args[1]]())
}

// rights writes the roles of all executables into a folder.
func rights(folder string) error {
	return errors.Join(
		resourcemanager.Executable(nil, nil).WriteRights(folder), admissioncontroller.Executable(nil, nil).WriteRights(folder),
		nodeagentauthorizer.Executable(nil, nil).WriteRights(folder),
	)
}

// metrics is the page about the metrics of all executables.
func metrics() string {
	resources, admissions, agents := resourcemanager.Executable(nil, nil), admissioncontroller.Executable(nil, nil), nodeagentauthorizer.Executable(nil, nil)
	return manifests.MetricsPage(map[string][]feature.Metric{resources.Name: resources.Metrics(), admissions.Name: admissions.Metrics(), agents.Name: agents.Metrics()},
		[]string{resources.Name, admissions.Name, agents.Name})
}
