package process

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// reference is the verb that prints the page of the reference documents.
func (c *Command) reference(root *cobra.Command) Subcommand {
	return Subcommand{
		Name: "reference", Short: "Print the reference of the command line as Markdown",
		Run: func(_ *pflag.FlagSet, out io.Writer) error {
			_, err := io.WriteString(out, c.markdown(root))
			return err
		},
	}
}

const referenceHead = `# Command line of %s

Generated from the command; ` + "`make generate`" + ` updates it.
` + "`--help`" + ` of each command prints the same; ` + "`completion SHELL`" + ` prints a script for bash, fish, powershell or zsh.
A verb without exit codes below ends with 0 after success, and with 1 after a failure, whose reason is on stderr.
`

// markdown is the reference page: a flag or a paragraph of several commands stands there once.
func (c *Command) markdown(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, referenceHead, c.Name)
	if len(c.Shared) > 0 {
		fmt.Fprintf(&b, "The page of the [client](kubectl-espalier-command-line.md) describes %s.\n", strings.Join(sharedNames(c.Shared), ", "))
	}
	all := slices.DeleteFunc(c.pages(root), func(p *page) bool {
		verb := strings.TrimPrefix(p.name, c.Name+" ")
		return c.Shared[verb] != "" || verb == "completion"
	})
	flags, groups := flagsOfSeveral(all)
	seen := map[string]bool{}
	for i, p := range all {
		p.writeMarkdown(&b, flags, groups, seen)
		if i == 0 && len(flags) > 0 {
			b.WriteString("\n## Common flags\n\n")
			writeTerms(&b, flags)
		}
		for _, group := range groups {
			if i == 0 {
				fmt.Fprintf(&b, "\n%s:\n\n```\n%s```\n", group.title, group.code)
			}
		}
	}
	return b.String()
}

// sharedNames returns the verbs, each with its name in the client if that differs.
func sharedNames(shared map[string]string) []string {
	var names []string
	for _, verb := range slices.Sorted(maps.Keys(shared)) {
		name := "`" + verb + "`"
		if shared[verb] != verb {
			name += " (as " + shared[verb] + ")"
		}
		names = append(names, name)
	}
	return names
}

// flagsOfSeveral returns the flags and the groups of flags that more than one page has. If a flag has several
// meanings, it returns the commonest.
func flagsOfSeveral(pages []*page) (flags []Term, groups []section) {
	pagesOf, groupsOf := map[Term]int{}, map[string]int{}
	for _, p := range pages {
		for _, s := range p.sections {
			if s.grouped {
				if groupsOf[s.code]++; groupsOf[s.code] == 2 {
					groups = append(groups, s)
				}
			}
			for _, term := range s.flags() {
				pagesOf[term]++
			}
		}
	}
	commonest := map[string]Term{}
	for _, p := range pages {
		for _, s := range p.sections {
			for _, term := range s.flags() {
				if name := term.flag(); pagesOf[term] > max(1, pagesOf[commonest[name]]) {
					commonest[name] = term
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(commonest)) {
		flags = append(flags, commonest[name])
	}
	return flags, groups
}

// flags are the terms of a section with flags, without --help.
func (s section) flags() []Term {
	if s.title != flagsTitle {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.terms), func(t Term) bool { return t.flag() == "--help" })
}

// flag returns the long form of a flag, without its value.
func (t Term) flag() string {
	for _, word := range strings.Fields(t.Name) {
		if strings.HasPrefix(word, "--") {
			return word
		}
	}
	return t.Name
}

var markdownEscapes = strings.NewReplacer("<", "&lt;")

func writeTerms(b *strings.Builder, terms []Term) {
	for _, term := range terms {
		fmt.Fprintf(b, "- `%s`: %s\n", term.Name, markdownEscapes.Replace(term.Text))
	}
}

// writeMarkdown writes a part of the reference: only the names of flags and groups that several pages have, and no
// paragraph that was seen.
func (p *page) writeMarkdown(b *strings.Builder, flags []Term, groups []section, seen map[string]bool) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", p.name, p.short, p.use)
	for _, paragraph := range p.paragraphs {
		if !seen[paragraph] {
			fmt.Fprintf(b, "\n%s\n", markdownEscapes.Replace(paragraph))
		}
		seen[paragraph] = true
	}
	var also []string
	for _, s := range p.sections {
		switch {
		case s.title == commandsTitle, slices.Equal(s.terms, exitCodesOfVerbs):
		case s.title == flagsTitle:
			var own []Term
			for _, term := range s.flags() {
				if slices.Contains(flags, term) {
					also = append(also, "`"+term.flag()+"`")
				} else {
					own = append(own, term)
				}
			}
			if len(own) > 0 {
				b.WriteString("\n")
				writeTerms(b, own)
			}
		case slices.ContainsFunc(groups, func(group section) bool { return group.code == s.code && s.grouped }):
			also = append(also, "connection flags")
		default:
			fmt.Fprintf(b, "\n%s:\n\n", s.title)
			writeTerms(b, s.terms)
			if s.code != "" {
				fmt.Fprintf(b, "```\n%s```\n", s.code)
			}
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(b, "\n[Common flags](#common-flags): %s.\n", strings.Join(also, ", "))
	}
}
