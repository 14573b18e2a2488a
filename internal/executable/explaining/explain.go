// Package explaining is the verb explain of all executables: the question, as flags and a request; the source of the
// answer, which is a running process, a cluster or a dump; and the form in which it is printed.
package explaining

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/endpoint/explain"
	"github.com/espalier-project/espalier/internal/process"
)

// Exit codes of the verb: not allowed, and an unknown answer.
const (
	notAllowed = process.ExitCode(1)
	failed     = 2
)

// Executable has the parts of an executable that the verb needs.
type Executable struct {
	// Long describes the verb, Example is a request.
	Long, Example string
	Identities    []Identity
	// Resource says to which API group a resource of the rules belongs.
	Resource func(resource string) (group string, clusterScoped, known bool)
	// Flags adds the flags of the sources that only this executable has.
	Flags func(*pflag.FlagSet)
	// Many is set if a running process may serve many shoots.
	Many bool
	// Answer answers without a running process.
	Answer func(ctx context.Context, set *pflag.FlagSet, c *Cluster, q *explain.Question) (explain.Answer, error)
}

// report is the output as JSON or YAML.
type report struct {
	Question *explain.Question `json:"question"`
	explain.Answer
}

// Command returns the verb.
func Command(x Executable) process.Subcommand {
	who := &asked{identities: x.Identities, resources: x.Resource}
	cluster, server, format, limit := &Cluster{}, &running{}, process.ReportFormat{}, time.Duration(0)
	return process.Subcommand{
		Name: "explain", Operand: "'VERB RESOURCE[.GROUP][/NAMESPACE][/NAME]'", Fault: failed,
		Short: "Explain a decision: the rule, the path, or the links that are missing",
		Long:  x.Long + "\nIt prints names of objects, never their content.\n\nExample: " + x.Example,
		Codes: []process.Term{{Name: "0", Text: "the request is allowed"}, {Name: "1", Text: "it is not allowed"}, {Name: "2", Text: "unknown; stderr has the reason"}},
		Arguments: func(arguments []string) error {
			if len(arguments) == 0 || len(arguments) > 2 {
				return fmt.Errorf("want one request, got %d words", len(arguments))
			}
			return nil
		},
		Complete: func(*pflag.FlagSet, []string, string) []string { return nil },
		CompleteFlags: map[string]func(*pflag.FlagSet, string) []string{
			"as": func(_ *pflag.FlagSet, begun string) []string { return who.begun(begun) },
		},
		Flags: func(set *pflag.FlagSet) {
			who.flags(set)
			cluster.Flags(set)
			server.flags(set)
			if x.Many {
				set.StringVar(&server.shoot, "shoot", "", "`name` of the shoot, if the running process serves many")
			}
			x.Flags(set)
			set.DurationVar(&limit, "timeout", time.Minute, "time limit")
			format.Add(set)
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			q, err := who.read(set.Args())
			if err != nil {
				return process.CommandLineError(err)
			}
			ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer cancel()
			ctx, end := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %s", limit))
			defer end()
			var answer explain.Answer
			if server.server != "" {
				answer, err = server.ask(ctx, cluster, q)
			} else {
				answer, err = x.Answer(ctx, set, cluster, q)
			}
			if err != nil {
				return err
			}
			return printed(out, format, &report{q, answer})
		},
	}
}

// printed prints an answer and returns the exit code.
func printed(out io.Writer, format process.ReportFormat, r *report) error {
	var err error
	if format.OutputFormat != "" {
		err = format.Print(out, r)
	} else {
		_, err = io.WriteString(out, r.Text(r.Question))
	}
	switch {
	case err != nil:
		return err
	case r.Decision == explain.Error:
		return errors.New(r.Reason)
	case r.Decision != explain.Allow:
		return notAllowed
	}
	return nil
}
