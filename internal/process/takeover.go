package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/dryrun"
)

// The exit codes of the takeover: there are writes, and the result is unknown.
const (
	someWrites = ExitCode(1)
	takeoverOf = 2
)

// Takeover returns the verb that prints the writes that the first pass of an executable would make. pass is a dry run
// of that pass; flags adds the flags for its configuration.
func Takeover(name string, flags func(*pflag.FlagSet), pass func(context.Context, *pflag.FlagSet, *DryRun) error) Subcommand {
	var format OutputFormat
	var dryRun bool
	var limit time.Duration
	return Subcommand{
		Name: "takeover", Fault: takeoverOf,
		Codes: []Term{{"0", "there is nothing to write"}, {"1", "there is something to write"}, {"2", "unknown, for example after a failed read"}},
		Short: "Print each write that the first pass would make, and make none",
		Long: "The command runs the controllers of the leader of " + name + ", with the same configuration and kubeconfigs, until no work is left.\n" +
			"It only sends reads: writes are recorded, and later reads see them. It takes no lease and opens no port.\n" +
			"Fields are printed without values. Defaults, admission and validation of API servers have no effect.",
		Flags: func(set *pflag.FlagSet) {
			flags(set)
			set.BoolVar(&dryRun, "dry-run", false, "required: the command never writes")
			set.DurationVar(&limit, "timeout", 10*time.Minute, "time limit of the pass")
			format.Add(set)
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			if !dryRun {
				return commandLineError{errors.New("takeover needs --dry-run: to write, start " + name)}
			}
			ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer cancel()
			r := newDryRun(Stderr(), limit)
			failed := pass(ctx, set, r)
			report := r.report()
			if err := report.print(out, format, failed == nil); err != nil || failed != nil {
				return errors.Join(failed, err)
			}
			return report.answer()
		},
	}
}

// takeoverReport is the output of the command.
type takeoverReport struct {
	// Writes are the writes of the first pass.
	Writes []dryrun.Write `json:"writes"`
	// TokensTakenForAccepted counts the tokens that the pass would check with the API server, which is a write.
	TokensTakenForAccepted int `json:"tokensTakenForAccepted,omitempty"`
}

// answer returns the exit code as an error.
func (r *takeoverReport) answer() error {
	if len(r.Writes) > 0 {
		return someWrites
	}
	return nil
}

func (r *takeoverReport) print(out io.Writer, format OutputFormat, complete bool) error {
	if format != "" {
		return format.Print(out, r)
	}
	var b strings.Builder
	for _, w := range r.Writes {
		b.WriteString(line(w) + "\n")
	}
	switch {
	case !complete:
		fmt.Fprintf(&b, "%d writes until the pass ended early.\n", len(r.Writes))
	case len(r.Writes) == 0:
		b.WriteString("No writes.\n")
	case len(r.Writes) == 1:
		b.WriteString("1 write.\n")
	default:
		fmt.Fprintf(&b, "%d writes.\n", len(r.Writes))
	}
	if r.TokensTakenForAccepted > 0 {
		fmt.Fprintf(&b, "Tokens that were taken for accepted, as to ask the API server is a write: %d.\n", r.TokensTakenForAccepted)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// line returns a write as text.
func line(w dryrun.Write) string {
	kind := w.Resource
	if w.Group != "" {
		kind += "." + w.Group
	}
	if w.Subresource != "" {
		kind += "/" + w.Subresource
	}
	text := fmt.Sprintf("%s: %s %s %s", w.Cluster, w.Verb, kind, strings.TrimPrefix(w.Namespace+"/"+w.Name, "/"))
	if by := strings.TrimSpace(w.Controller + " " + w.For); by != "" {
		text += " (" + by + ")"
	}
	switch {
	case len(w.Fields) > 0:
		text += ": " + strings.Join(w.Fields, ", ")
	case w.Verb == "update" || w.Verb == "patch":
		text += ": changes nothing"
	}
	return text
}

func (r *DryRun) report() *takeoverReport {
	report := &takeoverReport{Writes: []dryrun.Write{}}
	for _, s := range r.servers {
		report.Writes = append(report.Writes, s.Writes()...)
		report.TokensTakenForAccepted += s.Assumed()
	}
	slices.SortStableFunc(report.Writes, dryrun.Compare)
	return report
}
