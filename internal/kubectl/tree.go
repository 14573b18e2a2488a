package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

type treeFlags struct {
	connection
	output format
	all    bool
	// selector selects ManagedResources by their labels.
	selector string
}

// tree is the verb that shows ManagedResources with their objects.
func tree() process.Subcommand {
	var flags treeFlags
	return process.Subcommand{
		Name: "tree", Operand: "[MANAGEDRESOURCE]", Fault: faultCode,
		Short: "Show ManagedResources and their objects: health, roll-out, the last drift and who caused it",
		Long: "Without a name it shows all ManagedResources of the namespace, problems first.\n\n" +
			clustersLong + "\n\n" +
			"The health checks are those of resource-manager.",
		Codes: []process.Term{
			{Name: "0", Text: "all is well, or on its way"},
			{Name: "1", Text: "something is wrong"},
			{Name: "2", Text: "an error"},
		},
		Arguments: func(arguments []string) error {
			if len(arguments) > 0 && (flags.all || flags.selector != "") {
				return errors.New("want no MANAGEDRESOURCE with --all-namespaces or --selector")
			}
			_, err := managedResourceName(arguments)
			return err
		},
		Complete:      flags.completeManagedResource,
		CompleteFlags: flags.completeFlags(outputOnly),
		Flags: func(set *pflag.FlagSet) {
			flags.add(set)
			flags.output.add(set)
			set.BoolVarP(&flags.all, "all-namespaces", "A", false, "show all namespaces, by class")
			set.StringVarP(&flags.selector, "selector", "l", "", "label `selector` of the ManagedResources")
		},
		Run: interruptible(func(ctx context.Context, set *pflag.FlagSet, out io.Writer) error {
			name, err := managedResourceName(set.Args())
			if err != nil {
				return err
			}
			return runTree(ctx, &flags, name, out)
		}),
	}
}

func runTree(ctx context.Context, flags *treeFlags, name string, out io.Writer) error {
	clusters, err := flags.open(ctx)
	if err != nil {
		return err
	}
	g := &treeReader{clusters: clusters, name: name, selector: flags.selector, within: clusters.namespace}
	if flags.all {
		g.within = ""
	}
	p := &treePrinter{out: out, style: styleOf(out), format: flags.output, byClass: flags.all}
	branches, err := g.read(ctx)
	if err != nil {
		return err
	}
	if err := p.print(branches, time.Now()); err != nil {
		return err
	}
	if slices.ContainsFunc(branches, func(b inspect.Branch) bool { return b.Level == inspect.Problem }) {
		return somethingFound
	}
	return nil
}

// treePrinter prints branches.
type treePrinter struct {
	style
	out    io.Writer
	format format
	// byClass heads the branches of each class.
	byClass bool
}

// print prints branches; now is the time for their ages.
func (p *treePrinter) print(branches []inspect.Branch, now time.Time) error {
	switch {
	case p.format.structured():
		return encode(p.out, p.format, branches)
	case p.format == asName:
		for i := range branches {
			if _, err := fmt.Fprintf(p.out, "managedresource.resources.gardener.cloud/%s\n", branches[i].Name); err != nil {
				return err
			}
		}
		return nil
	}
	rows := []row{{columns: [4]string{"NAME", "STATE", "AGE", "LAST DRIFT"}, level: heading}}
	class := ""
	for i := range branches {
		if p.byClass && branches[i].Class != class {
			class = branches[i].Class
			rows = append(rows, row{columns: [4]string{"CLASS " + class}, level: heading})
		}
		rows = append(rows, p.branch(&branches[i], now)...)
	}
	return p.table(rows)
}

// heading is the level of rows that are not objects.
const heading inspect.Level = ""

// row is a line of the table, and how urgent it is.
type row struct {
	columns [4]string
	level   inspect.Level
}

// mostState is the longest state that is printed without -o wide.
const mostState = 70

func (p *treePrinter) state(text string) string {
	text = plaintext.Line(text)
	if p.format == asWide || utf8.RuneCountInString(text) <= mostState {
		return text
	}
	return string([]rune(text)[:mostState-1]) + "…"
}

func (p *treePrinter) branch(b *inspect.Branch, now time.Time) []row {
	state := b.State
	for _, i := range b.Ignored {
		state += fmt.Sprintf(", %s set%s", i.Annotation, byWhom(i))
	}
	rows := []row{{columns: [4]string{"ManagedResource " + b.Namespace + "/" + b.Name, p.state(state), ago(now, b.Created.Time), ""}, level: b.Level}}
	for i := range b.Leaves {
		mark := "├─ "
		if i == len(b.Leaves)-1 {
			mark = "└─ "
		}
		rows = append(rows, p.leaf(mark, &b.Leaves[i], now))
	}
	return rows
}

func byWhom(i inspect.Ignored) string {
	if i.By == "" {
		return ""
	}
	return " by " + i.By
}

func (p *treePrinter) leaf(mark string, l *inspect.Leaf, now time.Time) row {
	kind := l.Kind
	if group, _, found := strings.Cut(l.APIVersion, "/"); found {
		kind += "." + group
	}
	age, drift := "", ""
	if l.Created != nil {
		age = ago(now, l.Created.Time)
	}
	if l.Drift != nil {
		drift = ago(now, l.Drift.Time.Time) + " ago"
		if l.Drift.By != "" {
			drift += " by " + l.Drift.By
		}
	}
	return row{columns: [4]string{mark + kind + " " + fullName(l.Namespace, l.Name), p.state(l.State), age, drift}, level: l.Level}
}

// table prints rows in columns; colours do not count for their widths.
func (p *treePrinter) table(rows []row) error {
	var widths [4]int
	for i := range rows {
		rows[i].columns = [4]string(plaintext.Lines(rows[i].columns[:]))
	}
	for _, r := range rows {
		if r.columns[1] == "" {
			continue // The heading of a class.
		}
		for i, text := range r.columns {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, text := range r.columns {
			b.WriteString(text + strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text))+3))
		}
		colour := map[inspect.Level]string{heading: bold, inspect.Problem: red, inspect.Underway: yellow}[r.level]
		line := strings.TrimRight(b.String(), " ")
		if colour != "" {
			line = p.in(colour, line)
		}
		if _, err := io.WriteString(p.out, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}
