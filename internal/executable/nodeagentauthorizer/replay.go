package nodeagentauthorizer

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/executable/replaying"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/replay"
	"github.com/espalier-project/espalier/internal/process"
)

// Replay returns the verb that decides about an audit log once more. flags lead to a configuration; read returns the one of a file, or with an empty
// path the one that flags lead to, or the defaults.
func Replay(flags func(*pflag.FlagSet), read func(file string) (*configuration, error)) process.Subcommand {
	var objects []string
	var compare string
	return replaying.Command(replaying.Options{
		Long: "It decides about the agents of one shoot, by the audit log of the shoot's API server, and prints decisions in which the configuration\n" +
			"(--config or the defaults) differs from the log, or from that of --compare.\n\n" +
			"Machines, Nodes, Pods, certificate signing requests and the Secrets with configurations come from --objects, and from writes\n" +
			"with bodies in the log (level RequestResponse). Nothing is read from a cluster.",
		Flags: func(set *pflag.FlagSet) {
			flags(set)
			set.StringArrayVar(&objects, "objects", nil, "`file` with objects at the start of the log, of kubectl get -o json; may be repeated")
			set.StringVar(&compare, "compare", "", "`file` with the second configuration")
		},
		Run: func(ctx context.Context, _ *pflag.FlagSet, source auditlog.Source, _ io.Writer) (*replaying.Result, error) {
			first, err := read("")
			if err != nil {
				return nil, err
			}
			options := replay.Options{Source: source, Objects: objects, First: ruleSet(first)}
			was, is := "log", "now"
			if compare != "" {
				second, err := read(compare)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", compare, err)
				}
				set := ruleSet(second)
				options.Second, was, is = &set, "first", "second"
			}
			r, err := replay.Run(ctx, options)
			if err != nil {
				return nil, err
			}
			notes := []string{fmt.Sprintf("%d objects were there; the facts followed %d writes of the log, and %d had no body and changed nothing.", r.Objects, r.Writes, r.Bodiless)}
			notes = append(notes, replaying.Unlisted(r.Followed)...)
			if r.Elsewhere > 0 {
				notes = append(notes, fmt.Sprintf("%d requests were allowed by another authorizer, as RBAC.", r.Elsewhere))
			}
			return &replaying.Result{Summary: r.Summary, Table: &r.Table, Was: was, Is: is, Decided: r.Decided, Undecided: r.Undecided, Notes: notes}, nil
		},
	})
}

// ruleSet is the policy of a configuration. Auto takes for granted that the API server sends selectors.
func ruleSet(cfg *configuration) replay.RuleSet {
	return replay.RuleSet{ByMachine: cfg.MachineNamespace != nil, AllowWatchAll: cfg.Nodes.AllowWatchAll, Selectors: cfg.AuthorizeWithSelectors != config.SelectorsFalse}
}
