package auditlog

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/espalier-project/espalier/internal/plaintext"
)

// Key groups decisions that are counted together: they have the same rule, client and resource, and the same
// difference.
type Key struct {
	Rule     string `json:"rule"`
	Client   string `json:"client"`
	Resource string `json:"resource"`
	// Was and Is are the compared decisions: Allow, NoOpinion.
	Was string `json:"was"`
	Is  string `json:"is"`
}

// Cell is a row of the table.
type Cell struct {
	Key
	Count int      `json:"count"`
	Verbs []string `json:"verbs"`
	// Example is the first such request, At its location in the log.
	Example string `json:"example"`
	At      string `json:"at"`
	Reason  string `json:"reason,omitempty"`
	// Missing are alternatives of missing links: each would allow the example, if it is refused for lack of a path.
	Missing []string `json:"missing,omitempty"`
	// Known is the source of the facts about the example: log, dump, both, or nothing.
	Known string `json:"known,omitempty"`
}

// cellLimit bounds the rows of the table: a thousand seeds that each have differences in ten rules.
const cellLimit = 10_000

// Other is the client of all decisions beyond the limit.
const Other = "<other>"

// Table counts differences.
type Table struct {
	cells map[Key]*Cell
	// Total is the number of all differences.
	Total int
}

// Add counts a difference. describe fills the cell of the first difference with a key.
func (t *Table) Add(key Key, e *Event, describe func(*Cell)) {
	t.Total++
	if t.cells == nil {
		t.cells = map[Key]*Cell{}
	}
	cell := t.cells[key]
	if cell == nil && len(t.cells) >= cellLimit {
		key = Key{Client: Other, Was: key.Was, Is: key.Is}
		cell = t.cells[key]
	}
	if cell == nil {
		cell = &Cell{Key: key, Example: Request(e), At: e.Place()}
		t.cells[key] = cell
		if key.Client != Other {
			describe(cell)
		}
	}
	cell.Count++
	if !slices.Contains(cell.Verbs, e.Verb) && len(cell.Verbs) < 10 {
		cell.Verbs = append(cell.Verbs, e.Verb)
	}
}

// Cells returns the rows, the largest counts first.
func (t *Table) Cells() []*Cell {
	all := slices.Collect(maps.Values(t.cells))
	for _, c := range all {
		slices.Sort(c.Verbs)
	}
	slices.SortFunc(all, func(a, b *Cell) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Was+a.Is, b.Was+b.Is))
	})
	return all
}

// Resource returns the group and subresource of a request in the form of kubectl.
func Resource(group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

// Request describes a request in one line.
func Request(e *Event) string {
	text := e.Verb + " " + Resource(e.APIGroup, e.Resource, e.Subresource)
	if at := strings.Trim(e.Namespace+"/"+e.Name, "/"); at != "" {
		text += " " + at
	}
	return text
}

// Place returns the location of the event in the log.
func (e *Event) Place() string {
	if e.Item > 0 {
		return fmt.Sprintf("%s line %d item %d", e.File, e.Line, e.Item)
	}
	return fmt.Sprintf("%s line %d", e.File, e.Line)
}

// Write prints the table for people; was and is are the titles of the compared decisions.
func (t *Table) Write(out io.Writer, was, is string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintf(w, "COUNT\tRULE\tCLIENT\tRESOURCE\tVERBS\t%s\t%s\tKNOWN FROM\tEXAMPLE\tMISSING\n", strings.ToUpper(was), strings.ToUpper(is)); err != nil {
		return err
	}
	for _, c := range t.Cells() {
		columns := plaintext.Lines([]string{
			dash(c.Rule), c.Client, dash(c.Resource), strings.Join(c.Verbs, ","), c.Was, c.Is, dash(c.Known), c.Example + " (" + c.At + ")", dash(first(c.Missing)),
		})
		if _, err := fmt.Fprintf(w, "%d\t%s\n", c.Count, strings.Join(columns, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// first returns the most likely missing links; the JSON form has all alternatives.
func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
