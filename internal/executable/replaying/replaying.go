// Package replaying has the shared parts of the executables' verb replay: its flags and its output.
package replaying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/process"
)

// Exit codes of the verb: something differs, and an unknown answer.
const (
	differs = process.ExitCode(1)
	fault   = 2
)

// Result is the result of a replay.
type Result struct {
	auditlog.Summary
	Table *auditlog.Table
	// Was and Is are the titles of the compared decisions.
	Was, Is string
	// Decided counts the requests of clients; Undecided counts those whose decisions cannot be compared.
	Decided, Undecided int
	// Notes are further facts that count.
	Notes []string
}

// Options adapts the verb to an executable.
type Options struct {
	// Long describes the verb, in some lines.
	Long  string
	Flags func(*pflag.FlagSet)
	// Run replays files. Without a result it has printed everything.
	Run func(ctx context.Context, set *pflag.FlagSet, source auditlog.Source, out io.Writer) (*Result, error)
}

// Command returns the verb.
func Command(o Options) process.Subcommand {
	var files []string
	var form string
	return process.Subcommand{
		Name: "replay", Fault: fault,
		Short: "Repeat the decisions of an audit log, and print the differences",
		Long: o.Long + "\n\nAn audit log has an event of audit.k8s.io/v1 a line, or is an EventList; gzip is recognised.\n" +
			"Ended requests count (stage ResponseComplete or Panic), and started watches, if the log has stage ResponseStarted.\n" +
			"Lines without an event are counted; a log of nothing else is an error.",
		Flags: func(set *pflag.FlagSet) {
			o.Flags(set)
			set.StringArrayVar(&files, "audit-log", nil, "`file` with audit events, - for standard input; may be repeated, in the order of time")
			set.StringVarP(&form, "output", "o", "text", "output `format`: text or json")
		},
		Codes: []process.Term{{Name: "0", Text: "nothing differs"}, {Name: "1", Text: "something differs"}, {Name: "2", Text: "an error"}},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			if len(files) == 0 {
				return process.CommandLineError(errors.New("replay needs --audit-log"))
			}
			if form != "text" && form != "json" {
				return process.CommandLineError(fmt.Errorf("--output: want text or json, got %q", form))
			}
			ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer cancel()
			progress := process.NewProgress(process.Stderr(), time.Now)
			r, err := o.Run(ctx, set, auditlog.Source{Files: files, Stdin: os.Stdin, Progress: func(far auditlog.Far) {
				progress.Tell(func() string { return described(far) })
			}}, out)
			progress.Done()
			if err != nil || r == nil {
				return err
			}
			if err := r.print(out, form); err != nil {
				return err
			}
			if r.Table.Total > 0 {
				return differs
			}
			return nil
		},
	}
}

// Unlisted returns a note about deletions that were not followed.
func Unlisted(f auditlog.Followed) []string {
	if f.Unlisted == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d deletions of collections do not name their objects in the log: these objects count as if they still existed.", f.Unlisted)}
}

// described returns the progress of a replay.
func described(far auditlog.Far) string {
	if far.All == 0 {
		return fmt.Sprintf("%d lines", far.Lines)
	}
	return fmt.Sprintf("%d lines, %d %% of the log", far.Lines, 100*far.Bytes/far.All)
}

// document is the JSON form.
type document struct {
	Lines       int              `json:"lines"`
	Malformed   int              `json:"malformed,omitempty"`
	Named       []string         `json:"malformedLines,omitempty"`
	Decided     int              `json:"decided"`
	Undecided   int              `json:"undecided,omitempty"`
	Total       int              `json:"different"`
	Was         string           `json:"was"`
	Is          string           `json:"is"`
	Differences []*auditlog.Cell `json:"differences"`
	Notes       []string         `json:"notes,omitempty"`
}

func (r *Result) print(out io.Writer, form string) error {
	cells := r.Table.Cells()
	if form == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(document{
			Lines: r.Lines, Malformed: r.Malformed, Named: r.Named, Decided: r.Decided, Undecided: r.Undecided, Total: r.Table.Total, Was: r.Was, Is: r.Is,
			Differences: append([]*auditlog.Cell{}, cells...), Notes: r.Notes,
		})
	}
	if len(cells) > 0 {
		if err := r.Table.Write(out, r.Was, r.Is); err != nil {
			return err
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d decisions differ; %d lines.\n", r.Table.Total, r.Decided, r.Lines)
	if r.Undecided > 0 {
		fmt.Fprintf(&text, "%d more cannot be compared: their objects are unknown here, or the log does not contain the decision.\n", r.Undecided)
	}
	if r.Malformed > 0 {
		fmt.Fprintf(&text, "%d lines are no audit events: %s", r.Malformed, strings.Join(r.Named, ", "))
		if r.Malformed > len(r.Named) {
			text.WriteString(", …")
		}
		text.WriteByte('\n')
	}
	for _, note := range r.Notes {
		text.WriteString(note + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}
