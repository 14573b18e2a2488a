package kubectl

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/process"
)

// Exit codes of the verbs.
const (
	somethingFound = process.ExitCode(1)
	faultCode      = 2
)

// Name is the command by which kubectl runs the verbs.
const Name = "kubectl espalier"

// executable is the file that kubectl runs.
const executable = "kubectl-espalier"

// Completer is the file that kubectl runs to complete the arguments of a verb.
const Completer = "kubectl_complete-espalier"

func verbs() []process.Subcommand {
	return []process.Subcommand{why(), tree(), diff(), manifestsVerb(), checkVerb(), holdVerb(), releaseVerb(), confirmVerb()}
}

// clustersLong describes, in the help of a verb, the clusters that the flags select.
const clustersLong = "ManagedResources and their Secrets are in the source (--kubeconfig, --context), managed objects in the target\n" +
	"(--target-kubeconfig, --target-context), which is the source if it is not given, as in a seed."

// Command returns the command of the client.
func Command() process.Command {
	return process.Command{
		Name: Name, Short: "Show the objects of ManagedResources in a cluster, and the reasons for their state",
		Long: clustersLong,
		Environment: []process.Term{
			{Name: "KUBECONFIG", Text: "path of the source's kubeconfig, if no flag has one"},
			{Name: "NO_COLOR", Text: "set to anything: no colours"},
		},
		Documents:   []string{"docs/operations/kubectl-espalier.md"},
		Subcommands: verbs(),
	}
}

// interruptible makes a verb end early with SIGINT or SIGTERM.
func interruptible(do func(context.Context, *pflag.FlagSet, io.Writer) error) func(*pflag.FlagSet, io.Writer) error {
	return func(set *pflag.FlagSet, out io.Writer) error {
		ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		return do(ctx, set, out)
	}
}
