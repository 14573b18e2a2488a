package process

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Pages returns the pages of an executable and its verbs.
func (c *Command) Pages() []*Page { return c.pages(c.root(io.Discard, func(logr.Logger) {})) }

func (c *Command) pages(root *cobra.Command) []*Page {
	root.InitDefaultCompletionCmd()
	all := []*Page{c.page(root)}
	for _, verb := range root.Commands() {
		if documented(verb) {
			all = append(all, c.page(verb))
		}
	}
	return all
}

// documented reports whether a verb is in the documentation; help is not.
func documented(verb *cobra.Command) bool { return verb.IsAvailableCommand() && verb.Name() != "help" }

// manPages returns the verb that writes man pages.
func (c *Command) manPages(root *cobra.Command) Subcommand {
	var dir string
	return Subcommand{
		Name: "man", Short: "Write the man pages into a folder",
		Flags: func(set *pflag.FlagSet) {
			set.StringVar(&dir, "dir", ".", "folder for the pages, created if needed")
		},
		Run: func(*pflag.FlagSet, io.Writer) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for _, p := range c.pages(root) {
				file := filepath.Join(dir, strings.ReplaceAll(p.Name, " ", "-")+".1")
				if err := os.WriteFile(file, []byte(p.man()), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, `-`, `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// roff returns a text in the syntax of a man page.
func roff(text string) string {
	escaped := roffEscapes.Replace("\n" + text)
	return escaped[1:]
}

// man returns the man page.
func (p *Page) man() string {
	var b strings.Builder
	title := strings.ToUpper(strings.ReplaceAll(p.Name, " ", "-"))
	fmt.Fprintf(&b, ".TH %s 1 \"\" Espalier \"Espalier commands\"\n", roff(title))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(strings.ReplaceAll(p.Name, " ", "-")), roff(p.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(p.Use))
	if len(p.Paragraphs) > 0 {
		b.WriteString(".SH DESCRIPTION\n")
	}
	for _, paragraph := range p.Paragraphs {
		fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
	}
	for _, s := range p.Sections {
		fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(s.Title)))
		for _, term := range s.Terms {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(term.Name), roff(term.Text))
		}
		if s.Code != "" {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(strings.TrimSuffix(s.Code, "\n")))
		}
	}
	return b.String()
}
