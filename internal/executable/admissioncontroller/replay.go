package admissioncontroller

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/executable/replaying"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/seedauthorizer/replay"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// Replay returns the verb that decides about an audit log once more. flags lead to a configuration; read returns the one of a file, or with an empty
// path the one that flags lead to, or the defaults.
func Replay(flags func(*pflag.FlagSet), read func(file string) (*configuration, error)) process.Subcommand {
	var dir, compare, against string
	var without []string
	var selectorsSent, decisions bool
	return replaying.Command(replaying.Options{
		Long: "It decides like the SeedAuthorizer and the ShootAuthorizer, and prints decisions in which the configuration (--config or the defaults) differs\n" +
			"from the log, or from a second rule set: --compare, --against or --without-edges.\n\n" +
			"The graph starts from the dump, and follows writes with bodies in the log (level RequestResponse). Nothing is read from a cluster.",
		Flags: func(set *pflag.FlagSet) {
			flags(set)
			set.StringVar(&dir, "dump", "", "`folder` with a dump of the garden, as dump writes it")
			set.StringVar(&compare, "compare", "", "`file` with the configuration of the second rule set")
			set.StringSliceVar(&without, "without-edges", nil, "`rules` of edges that the second rule set lacks, such as GE-27 (docs/reference/graph.md)")
			set.StringVar(&against, "against", "", "`executable` of another release that decides with the same flags")
			set.BoolVar(&decisions, "decisions", false, "print each decision as a line, without a comparison")
			set.BoolVar(&selectorsSent, "selectors", true, "assume that the API server sends selectors to authorizers")
		},
		Run: func(ctx context.Context, set *pflag.FlagSet, source auditlog.Source, out io.Writer) (*replaying.Result, error) {
			if err := replay.CheckEdges(without); err != nil {
				return nil, process.CommandLineError(fmt.Errorf("--without-edges: %w", err))
			}
			first, err := read("")
			if err != nil {
				return nil, err
			}
			options := replay.Options{Source: source, Dump: dir, First: replay.RuleSet{Policy: policyOf(first)}, Selectors: selectorsSent}
			if decisions {
				return nil, printDecisions(ctx, options, out)
			}
			if against != "" {
				found, err := runAgainst(ctx, against, set, options)
				if err != nil {
					return nil, err
				}
				return replayed(found, "second"), nil
			}
			is := "now"
			if compare != "" || len(without) > 0 {
				second := first
				if compare != "" {
					if second, err = read(compare); err != nil {
						return nil, fmt.Errorf("%s: %w", compare, err)
					}
				}
				slices.Sort(without)
				options.Second = &replay.RuleSet{Policy: policyOf(second), Without: without}
				is = "second"
			}
			found, err := replay.Run(ctx, options)
			if err != nil {
				return nil, err
			}
			return replayed(found, is), nil
		},
	})
}

// printDecisions prints each decision in the form that --against reads.
func printDecisions(ctx context.Context, o replay.Options, out io.Writer) error {
	buffered := bufio.NewWriterSize(out, 64<<10)
	// The other executable reports its progress; this one reports failures on stderr.
	o.Source.Progress = nil
	o.Each = func(e *auditlog.Event, d rules.Decision) error { return replay.Print(buffered, e, d) }
	_, err := replay.Run(ctx, o)
	return errors.Join(err, buffered.Flush())
}

// runAgainst compares with the decisions of another executable about the same files, by the same flags.
func runAgainst(ctx context.Context, executable string, set *pflag.FlagSet, o replay.Options) (*replay.Result, error) {
	if slices.Contains(o.Source.Files, "-") {
		return nil, process.CommandLineError(errors.New("--against reads the log twice: standard input cannot be"))
	}
	arguments := []string{"replay", "--decisions"}
	set.Visit(func(f *pflag.Flag) {
		switch values, several := f.Value.(pflag.SliceValue); {
		case f.Name == "against" || f.Name == "output":
		case several:
			for _, value := range values.GetSlice() {
				arguments = append(arguments, "--"+f.Name+"="+value)
			}
		default:
			arguments = append(arguments, "--"+f.Name+"="+f.Value.String())
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var said strings.Builder
	other := exec.CommandContext(ctx, executable, arguments...) //nolint:gosec // The caller names the executable.
	other.Stderr = &said
	decided, err := other.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := other.Start(); err != nil {
		return nil, fmt.Errorf("--against: %w", err)
	}
	o.Against = replay.NewAgainst(decided)
	found, err := replay.Run(ctx, o)
	if err == nil { // Its last decisions may be about requests that are nobody's here.
		_, err = io.Copy(io.Discard, decided)
	}
	if err != nil {
		cancel()
	}
	if failed := other.Wait(); failed != nil && err == nil {
		err = fmt.Errorf("--against: %s: %w: %s", executable, failed, strings.TrimSpace(said.String()))
	}
	return found, err
}

// replayed returns the output of the verb.
func replayed(r *replay.Result, is string) *replaying.Result {
	was := "log"
	if is == "second" {
		was = "first"
	}
	notes := []string{fmt.Sprintf("The graph followed %d writes of the log; %d had no body and changed nothing.", r.Writes, r.Bodiless)}
	notes = append(notes, replaying.Unlisted(r.Followed)...)
	if !r.Taken.IsZero() {
		notes = append(notes, fmt.Sprintf("It began as the dump of %s, with %d objects.", r.Taken.Format(time.RFC3339), r.Objects))
	}
	if r.Elsewhere > 0 {
		notes = append(notes, fmt.Sprintf("%d requests were allowed by another authorizer, as RBAC.", r.Elsewhere))
	}
	return &replaying.Result{Summary: r.Summary, Table: &r.Table, Was: was, Is: is, Decided: r.Decided, Undecided: r.Undecided, Notes: notes}
}
