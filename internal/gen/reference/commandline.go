package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/process"
)

const commandLineHead = `# Command line of %s

Generated from the command; ` + "`make generate`" + ` updates it.
` + "`--help`" + ` of each command prints the same; ` + "`completion SHELL`" + ` prints a script for bash, fish, powershell or zsh.
A verb without exit codes below ends with 0 after success, and with 1 after a failure, whose reason is on stderr.
`

// CommandLine is the page about a command: a flag or a paragraph of several commands stands there once.
func CommandLine(c process.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, commandLineHead, c.Name)
	if len(c.Shared) > 0 {
		fmt.Fprintf(&b, "The page of the [client](kubectl-espalier-command-line.md) describes %s.\n", strings.Join(sharedNames(c.Shared), ", "))
	}
	all := slices.DeleteFunc(c.Pages(), func(p *process.Page) bool {
		verb := strings.TrimPrefix(p.Name, c.Name+" ")
		return c.Shared[verb] != "" || verb == "completion"
	})
	flags, groups := flagsOfSeveral(all)
	seen := map[string]bool{}
	for i, p := range all {
		writePage(&b, p, flags, groups, seen)
		if i == 0 && len(flags) > 0 {
			b.WriteString("\n## Common flags\n\n")
			writeTerms(&b, flags)
		}
		for _, group := range groups {
			if i == 0 {
				fmt.Fprintf(&b, "\n%s:\n\n```\n%s```\n", group.Title, group.Code)
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
func flagsOfSeveral(pages []*process.Page) (flags []process.Term, groups []process.Section) {
	pagesOf, groupsOf := map[process.Term]int{}, map[string]int{}
	for _, p := range pages {
		for _, s := range p.Sections {
			if s.Grouped {
				if groupsOf[s.Code]++; groupsOf[s.Code] == 2 {
					groups = append(groups, s)
				}
			}
			for _, term := range flagsOf(s) {
				pagesOf[term]++
			}
		}
	}
	commonest := map[string]process.Term{}
	for _, p := range pages {
		for _, s := range p.Sections {
			for _, term := range flagsOf(s) {
				if name := nameOf(term); pagesOf[term] > max(1, pagesOf[commonest[name]]) {
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

// flagsOf returns the terms of a section with flags, without --help.
func flagsOf(s process.Section) []process.Term {
	if s.Title != process.FlagsTitle {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Terms), func(t process.Term) bool { return nameOf(t) == "--help" })
}

// nameOf returns the long form of a flag, without its value.
func nameOf(t process.Term) string {
	for _, word := range strings.Fields(t.Name) {
		if strings.HasPrefix(word, "--") {
			return word
		}
	}
	return t.Name
}

var markdownEscapes = strings.NewReplacer("<", "&lt;")

func writeTerms(b *strings.Builder, terms []process.Term) {
	for _, term := range terms {
		fmt.Fprintf(b, "- `%s`: %s\n", term.Name, markdownEscapes.Replace(term.Text))
	}
}

// writePage writes a part of the reference: only the names of flags and groups that several pages have, and no
// paragraph that was seen.
func writePage(b *strings.Builder, p *process.Page, flags []process.Term, groups []process.Section, seen map[string]bool) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```\n%s\n```\n", p.Name, p.Short, p.Use)
	for _, paragraph := range p.Paragraphs {
		if !seen[paragraph] {
			fmt.Fprintf(b, "\n%s\n", markdownEscapes.Replace(paragraph))
		}
		seen[paragraph] = true
	}
	var also []string
	for _, s := range p.Sections {
		switch {
		case s.Title == process.CommandsTitle, slices.Equal(s.Terms, process.ExitCodesOfVerbs):
		case s.Title == process.FlagsTitle:
			var own []process.Term
			for _, term := range flagsOf(s) {
				if slices.Contains(flags, term) {
					also = append(also, "`"+nameOf(term)+"`")
				} else {
					own = append(own, term)
				}
			}
			if len(own) > 0 {
				b.WriteString("\n")
				writeTerms(b, own)
			}
		case slices.ContainsFunc(groups, func(group process.Section) bool { return group.Code == s.Code && s.Grouped }):
			also = append(also, "connection flags")
		default:
			fmt.Fprintf(b, "\n%s:\n\n", s.Title)
			writeTerms(b, s.Terms)
			if s.Code != "" {
				fmt.Fprintf(b, "```\n%s```\n", s.Code)
			}
		}
	}
	if len(also) > 0 {
		fmt.Fprintf(b, "\n[Common flags](#common-flags): %s.\n", strings.Join(also, ", "))
	}
}
