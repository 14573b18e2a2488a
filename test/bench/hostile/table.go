package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printAll prints what was measured, and the goals.
func printAll(out io.Writer, all []*stage) {
	w := tabwriter.NewWriter(out, 0, 4, 1, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(w, "| "+strings.Join(cells, "\t| ")+"\t|") }
	line("scenario", "hostile clients", "honest clients", "p50, ms", "p99, ms", "refused", "hostile, refused", "memory, MiB", "anonymous, MiB", "processor, s/s")
	line("---", "---", "---", "---", "---", "---", "---", "---", "---", "---")
	for _, s := range all {
		if s.during.honest == nil {
			continue
		}
		each := func(format string, of func(phase) any) string {
			var texts []string
			for _, p := range []phase{s.before, s.during, s.after} {
				text := "–"
				if p.honest != nil {
					text = fmt.Sprintf(format, of(p))
				}
				texts = append(texts, text)
			}
			return strings.Join(texts, " → ")
		}
		line(s.name, s.hostile, s.honest,
			each("%.3g", func(p phase) any { return milliseconds(p.honest.quantile(0.5)) }),
			each("%.3g", func(p phase) any { return milliseconds(p.honest.quantile(0.99)) }),
			each("%s", func(p phase) any { return fmt.Sprintf("%d/%d", p.honest.refused, len(p.honest.took)) }),
			fmt.Sprintf("%d/%d", s.during.hostile.refused, len(s.during.hostile.took)),
			each("%.0f", func(p phase) any { return p.peak }),
			each("%.0f", func(p phase) any { return p.memory.Anonymous }),
			each("%.2f", func(p phase) any { return p.cpu / p.took.Seconds() }))
	}
	_ = w.Flush()
	_, _ = fmt.Fprintln(out)
	line("scenario", "goal", "want", "got", "")
	line("---", "---", "---", "---", "---")
	for _, s := range all {
		for _, g := range s.goals {
			verdict := "met"
			if !g.met {
				verdict = "**missed**"
			}
			line(s.name, g.what, g.want, g.got, verdict)
		}
	}
	_ = w.Flush()
}

// explain says why requests were refused.
func (s *stage) explain(out io.Writer) {
	for name, p := range map[string]phase{"before": s.before, "during": s.during, "after": s.after} {
		for who, t := range map[string]*tally{"honest": p.honest, "hostile": p.hostile} {
			if t != nil && len(t.why) > 0 {
				_, _ = fmt.Fprintf(out, "%-12s refused %s, %s: %s\n", "", name, who, t.reasons())
			}
		}
	}
}
