package process

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pages are those of an executable and its verbs.
func (c *Command) pages(root *cobra.Command) []*page {
	root.InitDefaultCompletionCmd()
	all := []*page{c.page(root)}
	for _, verb := range root.Commands() {
		if documented(verb) {
			all = append(all, c.page(verb))
		}
	}
	return all
}

// documented reports whether a verb is shown; help says nothing of its own.
func documented(verb *cobra.Command) bool { return verb.IsAvailableCommand() && verb.Name() != "help" }

// manPages is the verb that writes man pages.
func (c *Command) manPages(root *cobra.Command) Subcommand {
	var dir string
	return Subcommand{
		Name: "man", Short: "Write the man pages into a folder",
		Flags: func(set *pflag.FlagSet) {
			set.StringVar(&dir, "dir", ".", "folder for the pages; it is created if it does not exist")
		},
		Run: func(*pflag.FlagSet, io.Writer) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for _, p := range c.pages(root) {
				file := filepath.Join(dir, strings.ReplaceAll(p.name, " ", "-")+".1")
				if err := os.WriteFile(file, []byte(p.man()), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, `-`, `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// roff returns a text as it is written in a man page.
func roff(text string) string {
	escaped := roffEscapes.Replace("\n" + text)
	return escaped[1:]
}

// man is the man page.
func (p *page) man() string {
	var b strings.Builder
	title := strings.ToUpper(strings.ReplaceAll(p.name, " ", "-"))
	fmt.Fprintf(&b, ".TH %s 1 \"\" Espalier \"Espalier commands\"\n", roff(title))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(strings.ReplaceAll(p.name, " ", "-")), roff(p.short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(p.use))
	if len(p.paragraphs) > 0 {
		b.WriteString(".SH DESCRIPTION\n")
	}
	for _, paragraph := range p.paragraphs {
		fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
	}
	for _, s := range p.sections {
		fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(s.title)))
		for _, term := range s.terms {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(term.Name), roff(term.Text))
		}
		if s.code != "" {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(strings.TrimSuffix(s.code, "\n")))
		}
	}
	return b.String()
}
