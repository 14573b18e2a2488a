package admissioncontroller

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/executable/explaining"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/seedauthorizer/dump"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// Explain returns the verb of a command that explains decisions of the authorizers. flags lead to a configuration, which read returns, or the defaults.
func Explain(command string, flags func(*pflag.FlagSet), read func() (*configuration, error)) process.Subcommand {
	var dir string
	var selectorsSent bool
	return explaining.Command(explaining.Executable{
		Long: "It decides like the SeedAuthorizer about clients of seeds, and like the ShootAuthorizer about clients of self-hosted shoots.\n" +
			"The graph is that of a garden (--kubeconfig), a dump (--dump) or a running process (--server), which has its own configuration.",
		Example:    command + " explain --as seed:a 'get secrets/garden-dev/aws'",
		Identities: []explaining.Identity{explaining.Seed, explaining.Extension, explaining.Shoot, explaining.Gardenadm},
		Resource:   rules.Resource,
		Flags: func(set *pflag.FlagSet) {
			flags(set)
			set.StringVar(&dir, "dump", "", "`folder` with a dump of the garden, instead of the cluster")
			set.BoolVar(&selectorsSent, "selectors", true, "assume that the API server sends selectors to authorizers")
		},
		Answer: func(ctx context.Context, _ *pflag.FlagSet, cluster *explaining.Cluster, q *explain.Question) (explain.Answer, error) {
			cfg, err := read()
			if err != nil {
				return explain.Answer{}, err
			}
			of, note, err := gardenOf(ctx, dir, cluster)
			if err != nil {
				return explain.Answer{}, err
			}
			attributes, err := q.Attributes()
			if err != nil {
				return explain.Answer{}, err
			}
			decides := newDeciders(cfg, of, sent(selectorsSent))
			answer := decides.explain(ctx, attributes)
			answer.Notes = append(answer.Notes, note, decides.scopes(cfg, attributes))
			return answer, nil
		},
	})
}

// gardenOf makes the graphs of a dump or of a cluster, and returns their source.
func gardenOf(ctx context.Context, dir string, cluster *explaining.Cluster) (*relation.Garden, string, error) {
	if dir != "" {
		of, header, err := dump.Load(dir)
		return of, "the garden is that of the dump of " + header.Taken.Format(time.RFC3339), err
	}
	restConfig, err := cluster.RESTConfig()
	if err != nil {
		return nil, "", err
	}
	of := relation.NewGarden(clock.RealClock{})
	err = readGarden(ctx, restConfig, func(kind graph.Kind, object runtime.Object) error {
		of.Set(kind, object)
		return nil
	})
	return of, "the garden is the current state of the cluster of the kubeconfig", err
}

// readGarden hands over all objects of a garden that the graphs are made of. It prints the progress on a terminal.
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

// deciders are both authorizers without any access to a garden.
type deciders struct{ seeds, shoots *rules.Authorizer }

func newDeciders(cfg *configuration, of *relation.Garden, selectors rules.Selectors) deciders {
	options := rules.Options{
		Graph: of.Seeds.Graph, Watches: relation.Watches, Facts: of.Seeds.Facts(), Selectors: selectors, Log: logr.Discard(),
		ReadAll:    cfg.Server.SeedAuthorizer.ReadScope == config.ReadScopeAll,
		WriteOwned: cfg.Server.SeedAuthorizer.WriteScope == config.WriteScopeOwned,
		Shadow:     shadowOf(cfg),
	}
	seeds := rules.NewSeedAuthorizer(options)
	options.Graph, options.Watches, options.Facts, options.WriteOwned = of.Shoots.Graph, relation.SelfHosted, of.Shoots.Facts(), false
	options.Shadow = shadowOfShoots(options.Shadow)
	return deciders{seeds, rules.NewShootAuthorizer(options, seeds)}
}

// explain asks the authorizer that decides about the user.
func (d deciders) explain(ctx context.Context, attributes authorizer.Attributes) explain.Answer {
	if d.shoots.Names(attributes) {
		return d.shoots.Explain(ctx, attributes)
	}
	return d.seeds.Explain(ctx, attributes)
}

// scopes describes the configuration that counted.
func (d deciders) scopes(cfg *configuration, attributes authorizer.Attributes) string {
	c := &cfg.Server.SeedAuthorizer
	text := fmt.Sprintf("readScope is %s", c.ReadScope)
	if !d.shoots.Names(attributes) {
		text += fmt.Sprintf(", writeScope is %s", c.WriteScope)
	}
	return text
}

// sent reports whether an API server sends selectors.
type sent bool

// Possible implements rules.Selectors.
func (s sent) Possible(context.Context) (bool, error) { return bool(s), nil }

// Known implements rules.Selectors.
func (s sent) Known() (possible, known bool) { return bool(s), true }

// Dump returns the verb that writes what the graphs need of a garden into a folder.
func Dump() process.Subcommand {
	cluster, limit := &explaining.Cluster{}, time.Duration(0)
	return process.Subcommand{
		Name: "dump", Operand: "DIR", Fault: 2,
		Codes: []process.Term{{Name: "0", Text: "dumped"}, {Name: "2", Text: "an error"}},
		Short: "Write the objects of a garden that the graphs need into a folder",
		Long: "DIR is a new or an empty folder. It gets a file for each resource, with an object a line, and at the end header.json.\n" +
			"A dump has names, references, two annotations and times; no labels, and no data of Secrets and ConfigMaps.\n" +
			"The user must be allowed to list the kinds that admission-controller watches. explain and replay read a dump with --dump.",
		Flags: func(set *pflag.FlagSet) {
			cluster.Flags(set)
			set.DurationVar(&limit, "timeout", 10*time.Minute, "time limit")
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("not done within %s", limit))
			defer cancel()
			restConfig, err := cluster.RESTConfig()
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
