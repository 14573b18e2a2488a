package admissioncontroller

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/seedauthorizer/dump"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
)

// readGarden calls each with all objects of a garden that the graphs need. It prints the progress on a terminal.
func readGarden(ctx context.Context, restConfig *rest.Config, each func(graph.Kind, runtime.Object) error) error {
	httpClient, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	client, err := garden.NewClient(restConfig, httpClient)
	if err != nil {
		return err
	}
	stderr := process.Stderr()
	log := process.NewLogger("error", "text", stderr)
	var report func(string)
	if process.IsTerminal(stderr) {
		report = func(kind string) { _, _ = fmt.Fprintf(stderr, "reading %s objects\n", kind) }
	}
	return garden.Each(ctx, client, log, report, each)
}

// gardenCluster is a user's connection to the garden: a kubeconfig and a context, as for kubectl.
type gardenCluster struct{ kubeconfig, context string }

func (c *gardenCluster) flags(set *pflag.FlagSet) {
	set.StringVar(&c.kubeconfig, "kubeconfig", "", "`path` of the kubeconfig; default: KUBECONFIG or ~/.kube/config")
	set.StringVar(&c.context, "context", "", "`name` of the kubeconfig's context")
}

// restConfig returns the configuration of the client. The kubeconfig belongs to the user who runs the command, so its
// plug-ins may run.
func (c *gardenCluster) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.QPS, config.Burst = 50, 100 // For pages of some twenty kinds, one after the other.
	return cluster.RefuseRedirects(config), nil
}

// Dump returns the verb that writes the objects of a garden that the graphs need into a folder.
func Dump() process.Subcommand {
	cluster, limit := &gardenCluster{}, time.Duration(0)
	return process.Subcommand{
		Name: "dump", Operand: "DIR", Fault: 2,
		Codes: []process.Term{{Name: "0", Text: "dumped"}, {Name: "2", Text: "an error"}},
		Short: "Write the objects of a garden that the graphs need into a folder",
		Long: "DIR is a new or an empty folder. It gets a file for each resource, with an object a line, and at the end header.json.\n" +
			"A dump has names, references, two annotations and times; no labels, and no data of Secrets and ConfigMaps.\n" +
			"The user must be allowed to list the kinds that admission-controller watches. replay reads a dump with --dump.",
		Flags: func(set *pflag.FlagSet) {
			cluster.flags(set)
			set.DurationVar(&limit, "timeout", 10*time.Minute, "time limit")
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("not done within %s", limit))
			defer cancel()
			restConfig, err := cluster.restConfig()
			if err != nil {
				return err
			}
			to, err := dump.Create(set.Arg(0), time.Now())
			if err != nil {
				return err
			}
			if err := readGarden(ctx, restConfig, to.Add); err != nil {
				return err
			}
			header, err := to.Close()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "%s: %d objects of %d kinds\n", set.Arg(0), header.Objects(), len(header.Files))
			return err
		},
	}
}
