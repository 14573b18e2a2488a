// docs writes the reference pages that are generated from tables in the code, the comment of package relation, and
// the roles of all executables.
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

	admissioncommand "github.com/espalier-project/espalier/internal/commandline/admissioncontroller"
	agentcommand "github.com/espalier-project/espalier/internal/commandline/nodeagentauthorizer"
	resourcecommand "github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/executable/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/gen/reference"
	"github.com/espalier-project/espalier/internal/kubectl"
	"github.com/espalier-project/espalier/internal/process"
)

// pages are the reference pages, and the comment of a package, by name.
func pages() map[string]func() string {
	pages := map[string]func() string{
		"graph": graphPage, "relation-doc": relationDoc,
		"seed-authorizer-rules": seedRules, "shoot-authorizer-rules": shootRules, "node-agent-rules": nodeAgentRules,
		"resource-manager-features":      func() string { return reference.Features(resourcemanager.Executable(nil, nil)) },
		"admission-controller-features":  func() string { return reference.Features(admissioncontroller.Executable(nil, nil)) },
		"node-agent-authorizer-features": func() string { return reference.Features(nodeagentauthorizer.Executable(nil, nil)) },
		"metrics":                        metrics, "profiles": profiles,
	}
	for name, of := range map[string]func() process.Command{
		"resource-manager": resourcecommand.Command, "admission-controller": admissioncommand.Command, "node-agent-authorizer": agentcommand.Command,
		"kubectl-espalier": kubectl.Command,
	} {
		pages[name+"-command-line"] = func() string { return reference.CommandLine(of()) }
	}
	maps.Copy(pages, configurations)
	return pages
}

func main() {
	pages := pages()
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
		reference.WriteRights(resourcemanager.Executable(nil, nil), folder), reference.WriteRights(admissioncontroller.Executable(nil, nil), folder),
		reference.WriteRights(nodeagentauthorizer.Executable(nil, nil), folder),
	)
}

// metrics returns the page about the metrics of all executables.
func metrics() string {
	resources, admissions, agents := resourcemanager.Executable(nil, nil), admissioncontroller.Executable(nil, nil), nodeagentauthorizer.Executable(nil, nil)
	return reference.MetricsPage(map[string][]reference.Metric{
		resources.Name: reference.Metrics(resources), admissions.Name: reference.Metrics(admissions), agents.Name: reference.Metrics(agents),
	}, []string{resources.Name, admissions.Name, agents.Name})
}
