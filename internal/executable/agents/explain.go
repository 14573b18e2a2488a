package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/executable/explaining"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/view"
	"github.com/espalier-project/espalier/internal/process"
)

// shootFlags select a shoot, and override its configuration.
type shootFlags struct {
	source                   explaining.Cluster
	machineNamespace         string
	selectors, allowWatchAll bool
}

func (f *shootFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.machineNamespace, "machine-namespace", "", "`namespace` of the shoot's Machines; default: none, agents are known by their Nodes")
	set.StringVar(&f.source.Kubeconfig, "source-kubeconfig", "", "`path` of a kubeconfig of the cluster with the Machines")
	set.StringVar(&f.source.Context, "source-context", "", "`name` of its context")
	set.BoolVar(&f.selectors, "selectors", false, "decide by the selectors of list and watch requests for Pods")
	set.BoolVar(&f.allowWatchAll, "allow-watch-all", false, "assume nodes.allowWatchAll")
}

// Explain returns the verb that explains decisions about the agents of nodes: the last word of a command. A running process may serve many shoots.
func Explain(command string, many bool) process.Subcommand {
	flags := &shootFlags{}
	verb := explaining.Command(explaining.Executable{
		Long: "It decides as the node-agent authorizer, by objects of the shoot (--kubeconfig) and of the cluster with its Machines\n" +
			"(--source-kubeconfig), or asks a running process (--server).",
		Example:    command + " --as machine:shoot--dev--web-worker-1 --machine-namespace shoot--dev--web 'get secrets/kube-system/x'",
		Identities: explaining.Agent(rules.UserPrefix, rules.AgentsGroup), Resource: rules.Resource, Flags: flags.add, Many: many,
		Answer: func(ctx context.Context, _ *pflag.FlagSet, target *explaining.Cluster, q *explain.Question) (explain.Answer, error) {
			shoot, err := flags.shoot(target)
			if err != nil {
				return explain.Answer{}, err
			}
			attributes, err := q.Attributes()
			if err != nil {
				return explain.Answer{}, err
			}
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			go func() { _ = shoot.View.Start(ctx) }() // It returns nothing but nil, when the context ends.
			if err := known(ctx, shoot.View); err != nil {
				return explain.Answer{}, err
			}
			return shoot.Authorizer.Explain(ctx, attributes), nil
		},
	})
	verb.Name = command[strings.LastIndex(command, " ")+1:]
	return verb
}

func (f *shootFlags) shoot(target *explaining.Cluster) (*Shoot, error) {
	o := Options{View: view.Options{MachineNamespace: f.machineNamespace, Selectors: view.SelectorsNever, Clock: clock.RealClock{}, Log: logr.Discard()}, AllowWatchAll: f.allowWatchAll}
	if f.selectors {
		o.View.Selectors = view.SelectorsAlways
	}
	var err error
	if o.View.Target, err = connect(target); err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	if f.machineNamespace != "" {
		if f.source.Kubeconfig == "" && f.source.Context == "" {
			return nil, errors.New("source cluster: --machine-namespace needs --source-kubeconfig or --source-context")
		}
		if o.View.Source, err = connect(&f.source); err != nil {
			return nil, fmt.Errorf("source cluster: %w", err)
		}
	}
	return New(o)
}

func connect(c *explaining.Cluster) (cluster.Connection, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return cluster.Connection{}, err
	}
	return cluster.Connect(config)
}

// look is the interval of checking whether a shoot is known.
const look = 20 * time.Millisecond

// known waits until all of a shoot is known that decides.
func known(ctx context.Context, v *view.View) error {
	for !v.Synced() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: waiting for the objects of %s", context.Cause(ctx), strings.Join(slices.Concat(v.SourceAwaited(), v.TargetAwaited()), ", "))
		case <-time.After(look):
		}
	}
	return nil
}
