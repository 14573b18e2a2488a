package admissioncontroller

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/seedauthorizer/replay"
)

// progressOf describes the progress of a replay.
func progressOf(far auditlog.Far) string {
	if far.All == 0 {
		return fmt.Sprintf("%d lines", far.Lines)
	}
	return fmt.Sprintf("%d lines, %d %% of the log", far.Lines, 100*far.Bytes/far.All)
}

// replayDocument is the JSON form of replay's output.
type replayDocument struct {
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

// printReplay prints the result of a replay; was and is are the titles of the compared decisions.
func printReplay(r *replay.Result, was, is string, out io.Writer, form string) error {
	cells, notes := r.Cells(), replayNotes(r)
	if form == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(replayDocument{
			Lines: r.Lines, Malformed: r.Malformed, Named: r.Named, Decided: r.Decided, Undecided: r.Undecided, Total: r.Total, Was: was, Is: is,
			Differences: append([]*auditlog.Cell{}, cells...), Notes: notes,
		})
	}
	if len(cells) > 0 {
		if err := r.Write(out, was, is); err != nil {
			return err
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d decisions differ; %d lines.\n", r.Total, r.Decided, r.Lines)
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
	for _, note := range notes {
		text.WriteString(note + "\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// replayNotes returns further facts about a replay.
func replayNotes(r *replay.Result) []string {
	notes := []string{fmt.Sprintf("The graph followed %d writes of the log; %d had no body and changed nothing.", r.Writes, r.Bodiless)}
	if r.Unlisted > 0 {
		notes = append(notes, fmt.Sprintf("%d deletions of collections do not name their objects in the log: these objects count as if they still existed.", r.Unlisted))
	}
	if !r.Taken.IsZero() {
		notes = append(notes, fmt.Sprintf("It began as the dump of %s, with %d objects.", r.Taken.Format(time.RFC3339), r.Objects))
	}
	if r.ByOthers > 0 {
		notes = append(notes, fmt.Sprintf("%d requests were allowed by another authorizer, as RBAC.", r.ByOthers))
	}
	return notes
}
