// Package command has the command line of the client, which is put together from those of the executables.
package command

import (
	"context"
	"slices"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/commandline/admissioncontroller"
	"github.com/espalier-project/espalier/internal/commandline/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	admission "github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/kubectl"
	"github.com/espalier-project/espalier/internal/process"
)

const long = `ManagedResources and their Secrets are in the source (--kubeconfig, --context), managed objects in the target
(--target-kubeconfig, --target-context), which is the source if it is not given, as in a seed.
The executables have the same verbs: resource-manager why and so on.`

// Client is the command of the client.
func Client() process.Command {
	c := kubectl.Command()
	c.Long = long
	c.Environment = append(c.Environment, process.Term{
		Name: "TARGET_KUBECONFIG", Text: "path of the target's kubeconfig for takeover, before targetClientConnection.kubeconfig",
	})
	c.Documents = append(c.Documents, "docs/concepts/seed-authorizer.md", "docs/operations/replay.md", "docs/operations/migrate.md")
	c.Subcommands = slices.Concat(c.Subcommands, []process.Subcommand{
		admission.Dump(), admissioncontroller.Replay(), takeover(),
		process.ValidateConfig(resourcemanager.ConfigKind, admissioncontroller.ConfigKind, nodeagentauthorizer.ConfigKind),
	})
	return c
}

// takeover is that of the executable which the configuration file is for. node-agent-authorizer writes nothing.
func takeover() process.Subcommand {
	flags := &process.ConfigFlags{}
	var extraTargetNamespaces []string
	add := func(set *pflag.FlagSet) {
		flags.Add(set)
		resourcemanager.ExtraTargetNamespaces(set, &extraTargetNamespaces)
	}
	return process.Takeover("resource-manager or admission-controller", add, func(ctx context.Context, _ *pflag.FlagSet, r *process.DryRun) error {
		content, err := flags.Content()
		if err != nil {
			return err
		}
		kind, err := process.KindOf(content, resourcemanager.ConfigKind, admissioncontroller.ConfigKind)
		if err != nil {
			return err
		}
		if kind.Format.Kind == admissioncontroller.ConfigKind.Format.Kind {
			return admissioncontroller.Rehearse(ctx, flags, r)
		}
		return resourcemanager.Rehearse(ctx, flags, extraTargetNamespaces, r)
	})
}
