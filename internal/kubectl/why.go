package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

// why is the verb that explains the state of an object.
func why() process.Subcommand {
	var to connection
	var output format
	var within string
	return process.Subcommand{
		Name: "why", Operand: "KIND[.GROUP] NAME", Fault: faultCode,
		Short: "Explain which ManagedResource owns an object, who changed it, and how to change it permanently",
		Long: "KIND is a kind, its plural or a short name, with .GROUP or .VERSION.GROUP where it is ambiguous; KIND/NAME is the same.\n" +
			"KIND mr is a ManagedResource of the source, whose conditions are printed.\n" +
			"The owner is the ManagedResource that the origin annotation names, else the one with the object in its inventory.\n\n" +
			clustersLong + "\n\n" +
			"Values of Secrets are masked. It sends ten requests at most, and one for each further Secret of the ManagedResource.",
		Codes: []process.Term{
			{Name: "0", Text: "the object is in sync, or no ManagedResource keeps it"},
			{Name: "1", Text: "the object differs, is missing, fought over or cannot be deleted"},
			{Name: "2", Text: "an error"},
		},
		Arguments:     wantsObject,
		Complete:      to.completeObject,
		CompleteFlags: to.completeFlags(map[string]func(*pflag.FlagSet, string) []string{"source-namespace": to.completeNamespace, "output": completeOutput}),
		Flags: func(set *pflag.FlagSet) {
			to.add(set)
			output.add(set)
			set.StringVar(&within, "source-namespace", "", "`namespace` of the inventories that are searched if no origin names the owner; default: all")
		},
		Run: interruptible(func(ctx context.Context, set *pflag.FlagSet, out io.Writer) error {
			report, err := answerWhy(ctx, &to, set.Args(), within)
			if err != nil {
				return err
			}
			if err := printWhy(out, styleOf(out), output, report, time.Now()); err != nil {
				return err
			}
			if report.Found() {
				return somethingFound
			}
			return nil
		}),
	}
}

func answerWhy(ctx context.Context, to *connection, arguments []string, within string) (*inspect.Report, error) {
	kindName, name, err := kindAndName(arguments)
	if err != nil {
		return nil, err
	}
	found, err := to.open(ctx)
	if err != nil {
		return nil, err
	}
	q := &question{clusters: found, name: name, within: within}
	if isManagedResource(kindName) { // It is an object of the source, as its owner is.
		found.target, found.targetNamespace = found.source, found.namespace
		q.kind = kindOfManagedResources()
	} else if q.kind, err = found.target.resolve(ctx, kindName); err != nil {
		return nil, err
	}
	q.namespace = q.kind.within(found.targetNamespace)
	return q.gather(ctx, time.Now())
}

// kindAndName reads KIND NAME or KIND/NAME.
func kindAndName(arguments []string) (kind, name string, err error) {
	switch len(arguments) {
	case 1:
		kind, name, _ = strings.Cut(arguments[0], "/")
	case 2:
		kind, name = arguments[0], arguments[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errors.New("want KIND NAME or KIND/NAME")
	}
	return kind, name, nil
}

// printWhy prints a report.
func printWhy(out io.Writer, s style, f format, r *inspect.Report, now time.Time) error {
	switch {
	case f.structured():
		return encode(out, f, r)
	case f == asName:
		if r.Owner == nil {
			return nil
		}
		_, err := fmt.Fprintf(out, "managedresource.resources.gardener.cloud/%s\n", r.Owner.Name)
		return err
	}
	p := &whyPrinter{style: s, now: now, wide: f == asWide}
	p.report(r)
	_, err := io.WriteString(out, p.text.String())
	return err
}

// whyPrinter prints a report: a heading, then one part for each question.
type whyPrinter struct {
	style
	now  time.Time
	wide bool
	text strings.Builder
}

func (p *whyPrinter) report(r *inspect.Report) {
	p.text.WriteString(p.in(bold, plaintext.Line(r.Kind+" "+fullName(r.Namespace, r.Name))) + plaintext.Line(" ("+r.APIVersion+")"))
	if r.Created != nil {
		p.text.WriteString(", created " + ago(p.now, r.Created.Time) + " ago")
	}
	p.text.WriteString("\n")
	p.part("Owner", p.owner(r)...)
	p.part("Manifest", p.manifest(r)...)
	p.part("State", p.state(r)...)
	p.part("Conditions", p.conditions(r)...)
	p.part("Writers", p.writers(r)...)
	p.part("Repairs", p.events(r.Repairs)...)
	p.part("Fights", p.events(r.Fights)...)
	p.part("Deleted", p.events(r.Deleted)...)
	p.part("Deletion", p.deletion(r)...)
	p.part("Left alone", p.ignored(r)...)
	p.part("If you edit it", p.edits(r)...)
	p.part("To change it", r.Lasting...)
	p.part("Faults", r.Faults...)
	p.part("Not known", r.NotKnown...)
}

// part prints a part, unless it has no lines.
func (p *whyPrinter) part(title string, lines ...string) {
	for i, line := range lines {
		if i > 0 {
			title = ""
		}
		p.text.WriteString(p.in(cyan, fmt.Sprintf("%-15s", title)) + " " + plaintext.StyledLine(line) + "\n")
	}
}

func (p *whyPrinter) owner(r *inspect.Report) []string {
	if r.Owner == nil {
		return []string{"nobody: " + r.Says}
	}
	o := r.Owner
	lines := []string{fmt.Sprintf("kept by ManagedResource %s/%s of class %s, by %s", o.Namespace, o.Name, o.Class, o.Proof)}
	if o.Deleting {
		lines = append(lines, p.in(yellow, "it is being deleted"))
	}
	if len(o.Conditions) > 0 {
		lines = append(lines, strings.Join(o.Conditions, ", "))
	}
	if o.By != nil {
		lines = append(lines, "written by "+p.writer(o.By))
	}
	return lines
}

func (p *whyPrinter) manifest(r *inspect.Report) []string {
	if r.Manifest == nil {
		return nil
	}
	m := r.Manifest
	lines := []string{fmt.Sprintf("document %d of key %s in Secret %s", m.Document, m.Key, m.Secret)}
	if m.By != nil {
		lines = append(lines, "written by "+p.writer(m.By))
	}
	return lines
}

// mostDifferences is the number of differences that are printed without -o wide, so that the text below them stays in
// view.
const mostDifferences = 10

func (p *whyPrinter) state(r *inspect.Report) []string {
	if r.Owner == nil {
		return p.health(r)
	}
	colour := map[inspect.State]string{inspect.InSync: green, inspect.Differs: red, inspect.Missing: red, inspect.Unknown: red}[r.State]
	lines := []string{p.in(colour, r.Says)}
	shown := r.Differences
	if !p.wide {
		shown = shown[:min(len(shown), mostDifferences)]
	}
	for _, d := range shown {
		lines = append(lines, p.difference(&d))
	}
	if more := len(r.Differences) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more: -o wide shows them", more))
	}
	return append(lines, p.health(r)...)
}

func (p *whyPrinter) health(r *inspect.Report) []string {
	if r.Health == "" {
		return nil
	}
	return []string{plaintext.Line(r.Health)}
}

func (p *whyPrinter) conditions(r *inspect.Report) []string {
	var lines []string
	for _, c := range r.Conditions {
		colour := ""
		if c.Status == resourcesv1alpha1.ConditionFalse && (c.Type == resourcesv1alpha1.ResourcesApplied || c.Type == resourcesv1alpha1.ResourcesHealthy) {
			colour = red
		}
		line := p.in(colour, plaintext.Line(fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason)))
		lines = append(lines, fmt.Sprintf("%s, since %s: %s", line, ago(p.now, c.LastTransitionTime.Time), plaintext.Line(c.Message)))
	}
	return lines
}

func (p *whyPrinter) difference(d *inspect.Difference) string {
	value := func(colour, text string) string {
		if text == "" {
			text = "(none)"
		}
		return p.in(colour, plaintext.Line(text))
	}
	line := "  " + plaintext.Line(d.Path)
	if d.Live != "" || d.Wanted != "" {
		line += ": " + value(red, d.Live) + " instead of " + value(green, d.Wanted)
	}
	if d.By != nil {
		line += ", by " + p.writer(d.By)
	}
	return line
}

func (p *whyPrinter) writer(w *inspect.Writer) string {
	text := plaintext.Line(w.Manager)
	if w.Subresource != "" {
		text += " (" + w.Subresource + ")"
	}
	if w.Time != nil {
		text += " " + ago(p.now, w.Time.Time) + " ago"
	}
	return text
}

// mostWriters is the number of writers that are printed without -o wide.
const mostWriters = 3

func (p *whyPrinter) writers(r *inspect.Report) []string {
	writers := r.Writers
	if !p.wide {
		writers = slices.DeleteFunc(slices.Clone(writers), func(w inspect.Writer) bool { return w.Subresource != "" })
		writers = writers[:min(len(writers), mostWriters)]
	}
	var lines []string
	for i := range writers {
		line := p.writer(&writers[i])
		if writers[i].Ours && !strings.HasSuffix(writers[i].Manager, "resource-manager") {
			line += ", which is resource-manager"
		}
		lines = append(lines, line)
	}
	return lines
}

// mostEvents is the number of Events that are printed without -o wide.
const mostEvents = 3

func (p *whyPrinter) events(events []inspect.Occurrence) []string {
	if !p.wide {
		events = events[:min(len(events), mostEvents)]
	}
	var lines []string
	for _, n := range events {
		lines = append(lines, fmt.Sprintf("%s ago: %s", ago(p.now, n.Time.Time), plaintext.Line(n.Text)))
	}
	return lines
}

func (p *whyPrinter) deletion(r *inspect.Report) []string {
	var lines []string
	if r.Deletion.Since != nil {
		lines = append(lines, p.in(yellow, "it is being deleted, since "+ago(p.now, r.Deletion.Since.Time)))
	}
	for _, hold := range r.Deletion.Holds {
		lines = append(lines, plaintext.Line(hold))
	}
	return lines
}

func (p *whyPrinter) ignored(r *inspect.Report) []string {
	var lines []string
	for _, i := range r.Ignored {
		line := fmt.Sprintf("%s (%s=%s %s", plaintext.Line(i.What), i.Annotation, plaintext.Line(i.Value), i.Where)
		if i.By != "" {
			line += ", set by " + plaintext.Line(i.By)
		}
		if i.Since != nil {
			line += " " + ago(p.now, i.Since.Time) + " ago"
		}
		lines = append(lines, line+")")
	}
	return lines
}

func (p *whyPrinter) edits(r *inspect.Report) []string {
	if r.EditsSay != "" {
		return []string{r.EditsSay}
	}
	if len(r.Edits) == 0 {
		return nil
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 1, 2, ' ', 0)
	for _, edit := range r.Edits {
		becomes := "is taken back"
		switch {
		case edit.Stays:
			becomes = "stays"
		case edit.StaysIfHeld:
			becomes = "stays if the hold counts"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", becomes, edit.Of, plaintext.Line(edit.Path))
	}
	_ = w.Flush()
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
