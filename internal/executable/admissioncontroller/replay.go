package admissioncontroller

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/seedauthorizer/replay"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// The exit codes of replay: there are differences, and the result is unknown.
const (
	replayDiffers = process.ExitCode(1)
	replayFault   = 2
)

// Replay returns the verb that repeats the decisions of an audit log. flags adds the flags for a configuration; read
// returns the configuration in a file or, if the path is empty, the one of the flags or the defaults.
func Replay(flags func(*pflag.FlagSet), read func(file string) (*configuration, error)) process.Subcommand {
	var dir, compare, against string
	var without []string
	var selectorsSent, decisions bool
	var files []string
	var form string
	return process.Subcommand{
		Name: "replay", Fault: replayFault,
		Short: "Repeat the decisions of an audit log, and print the differences",
		Long: "It decides like the SeedAuthorizer and the ShootAuthorizer, and prints decisions in which the configuration (--config or the defaults) differs\n" +
			"from the log, or from a second rule set: --compare, --against or --without-edges.\n\n" +
			"The graph starts from the dump, and follows writes with bodies in the log (level RequestResponse). Nothing is read from a cluster.\n\n" +
			"An audit log has an event of audit.k8s.io/v1 a line, or is an EventList; gzip is recognised.\n" +
			"Ended requests count (stage ResponseComplete or Panic), and started watches, if the log has stage ResponseStarted.\n" +
			"Lines without an event are counted; a log of nothing else is an error.",
		Flags: func(set *pflag.FlagSet) {
			flags(set)
			set.StringVar(&dir, "dump", "", "`folder` with a dump of the garden, as dump writes it")
			set.StringVar(&compare, "compare", "", "`file` with the configuration of the second rule set")
			set.StringSliceVar(&without, "without-edges", nil, "`rules` of edges that the second rule set lacks, such as GE-27 (docs/reference/graph.md)")
			set.StringVar(&against, "against", "", "`executable` of another release that decides with the same flags")
			set.BoolVar(&decisions, "decisions", false, "print each decision as a line, without a comparison")
			set.BoolVar(&selectorsSent, "selectors", true, "assume that the API server sends selectors to authorizers")
			set.StringArrayVar(&files, "audit-log", nil, "`file` with audit events, - for standard input; may be repeated, in the order of time")
			set.StringVarP(&form, "output", "o", "text", "output `format`: text or json")
		},
		Codes: []process.Term{{Name: "0", Text: "nothing differs"}, {Name: "1", Text: "something differs"}, {Name: "2", Text: "an error"}},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			switch {
			case len(files) == 0:
				return process.CommandLineError(errors.New("replay needs --audit-log"))
			case form != "text" && form != "json":
				return process.CommandLineError(fmt.Errorf("--output: want text or json, got %q", form))
			}
			if err := replay.CheckEdges(without); err != nil {
				return process.CommandLineError(fmt.Errorf("--without-edges: %w", err))
			}
			first, err := read("")
			if err != nil {
				return err
			}
			ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer cancel()
			progress := process.NewProgress(process.Stderr(), time.Now)
			options := replay.Options{Dump: dir, First: replay.RuleSet{Policy: policyOf(first)}, Selectors: selectorsSent}
			options.Source = auditlog.Source{Files: files, Stdin: os.Stdin, Progress: func(far auditlog.Far) {
				progress.Report(func() string { return progressOf(far) })
			}}
			if decisions {
				return printDecisions(ctx, options, out)
			}
			var found *replay.Result
			was, is := "log", "now"
			if against != "" || compare != "" || len(without) > 0 {
				was, is = "first", "second"
			}
			if against != "" {
				found, err = runAgainst(ctx, against, set, options)
			} else {
				if options.Second, err = secondRuleSet(first, compare, without, read); err != nil {
					return err
				}
				found, err = replay.Run(ctx, options)
			}
			progress.Done()
			if err != nil {
				return err
			}
			if err := printReplay(found, was, is, out, form); err != nil {
				return err
			}
			if found.Total > 0 {
				return replayDiffers
			}
			return nil
		},
	}
}

// secondRuleSet returns the rules of another configuration, or the rules without some edges; nil if neither is given.
func secondRuleSet(first *configuration, compare string, without []string, read func(string) (*configuration, error)) (*replay.RuleSet, error) {
	if compare == "" && len(without) == 0 {
		return nil, nil
	}
	second := first
	if compare != "" {
		var err error
		if second, err = read(compare); err != nil {
			return nil, fmt.Errorf("%s: %w", compare, err)
		}
	}
	slices.Sort(without)
	return &replay.RuleSet{Policy: policyOf(second), Without: without}, nil
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

// runAgainst compares the decisions with those of another executable for the same files and flags.
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
	if err == nil { // The last decisions may be for requests that do not count here.
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
