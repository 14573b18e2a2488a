package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/process"
)

const (
	commandLineHead = "# Command line of %s\n\nGenerated from the command, as its `--help`.\n"
	headOfAll       = "`completion SHELL` prints a script for bash, fish, powershell or zsh.\n" +
		"A verb exits with 0 after success and 1 after a failure, unless it has other codes; stderr has the reason.\n"
)

// commonVerbs are verbs of every executable.
var commonVerbs = []string{"man", "validate-config", "version"}

// CommandLine returns the page about a command. A flag or a paragraph of several commands is printed once.
func CommandLine(c process.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, commandLineHead, c.Name)
	if c.CommonIn == "" {
		b.WriteString(headOfAll)
	} else {
		fmt.Fprintf(&b, "Exit codes, common flags, more of the environment, `completion`, `man`, `validate-config` and `version` are those of [%s](%[1]s-command-line.md).\n", c.CommonIn)
	}
	all := slices.DeleteFunc(c.Pages(), func(p *process.Page) bool {
		verb := verbOf(p, c.Name)
		return verb == "completion" || c.CommonIn != "" && slices.Contains(commonVerbs, verb)
	})
	w := &writer{command: c, paragraphs: map[string]bool{}, lists: map[string]string{}}
	w.flags, w.groups = flagsOfSeveral(all)
	for i, p := range all {
		w.write(&b, p)
		if i > 0 || c.CommonIn != "" {
			continue
		}
		if len(w.flags) > 0 {
			b.WriteString("\n## Common flags\n\n")
			writeTerms(&b, w.flags)
		}
		for _, group := range w.groups {
			fmt.Fprintf(&b, "\n%s:\n\n```\n%s```\n", group.Title, group.Code)
		}
	}
	return b.String()
}

// verbOf returns the name of the verb of a page, or of the command itself.
func verbOf(p *process.Page, command string) string { return strings.TrimPrefix(p.Name, command+" ") }

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

// writeTerms writes a list of terms. The name of a flag's value is left out if it is a type, or if the text has it.
func writeTerms(b *strings.Builder, terms []process.Term) {
	for _, term := range terms {
		name := term.Name
		if i := strings.LastIndex(name, " "); i > 0 && strings.HasPrefix(name, "-") {
			if value := name[i+1:]; !strings.HasPrefix(value, "-") && (strings.HasPrefix(value, "string") || strings.Contains(term.Text, value)) {
				name = name[:i]
			}
		}
		fmt.Fprintf(b, "- `%s`: %s\n", name, markdownEscapes.Replace(term.Text))
	}
}

// writer writes the parts of a page.
type writer struct {
	command process.Command
	// flags and groups of flags are shared by several verbs.
	flags  []process.Term
	groups []process.Section
	// paragraphs are already on the page.
	paragraphs map[string]bool
	// lists are the names of common flags, with the first verb that has all of them.
	lists map[string]string
}

// write writes the part about a verb, or about the command itself.
func (w *writer) write(b *strings.Builder, p *process.Page) {
	verb := verbOf(p, w.command.Name)
	fmt.Fprintf(b, "\n## %s\n\n", verb)
	if use := strings.TrimSuffix(p.Use, " [flags]"); use != p.Name {
		fmt.Fprintf(b, "`%s`\n\n", use)
	}
	b.WriteString(p.Short + ".\n")
	for _, paragraph := range p.Paragraphs {
		if !w.paragraphs[paragraph] {
			fmt.Fprintf(b, "\n%s\n", markdownEscapes.Replace(paragraph))
		}
		w.paragraphs[paragraph] = true
	}
	var also []string
	for _, s := range p.Sections {
		if slices.ContainsFunc(w.groups, func(group process.Section) bool { return group.Code == s.Code && s.Grouped }) {
			also = append(also, "connection flags")
			continue
		}
		s.Terms = slices.DeleteFunc(slices.Clone(s.Terms), func(t process.Term) bool {
			isCommon := s.Title == process.FlagsTitle && slices.Contains(w.flags, t)
			if isCommon {
				also = append(also, "`"+nameOf(t)+"`")
			}
			return isCommon || nameOf(t) == "--help" || w.command.CommonIn != "" && isOfAll(t)
		})
		if s.Title != process.CommandsTitle && !slices.Equal(s.Terms, process.ExitCodesOfVerbs) {
			writeSection(b, s)
		}
	}
	list := strings.Join(also, ", ")
	switch first := w.lists[list]; {
	case list == "":
	case first != "":
		fmt.Fprintf(b, "\nCommon flags: as [%s](#%[1]s).\n", first)
	default:
		w.lists[list] = verb
		fmt.Fprintf(b, "\nCommon flags: %s.\n", list)
	}
}

// isOfAll reports whether every executable has a flag, a variable or an exit code.
func isOfAll(t process.Term) bool {
	return nameOf(t) == "--version" || slices.Contains(process.Environment, t) || slices.Contains(process.ExitCodesOfProcess, t)
}

// writeSection writes exit codes as a line, and other terms as a list.
func writeSection(b *strings.Builder, s process.Section) {
	switch {
	case len(s.Terms) == 0 && s.Code == "", s.Title == process.DocumentsTitle: // Pages link to each other.
	case s.Title == process.FlagsTitle:
		b.WriteString("\n")
		writeTerms(b, s.Terms)
	case s.Title == process.ExitCodesTitle:
		var codes []string
		for _, term := range s.Terms {
			codes = append(codes, "`"+term.Name+"` "+term.Text)
		}
		fmt.Fprintf(b, "\n%s: %s.\n", s.Title, strings.Join(codes, "; "))
	case s.Title == process.DeprecatedTitle:
		fmt.Fprintf(b, "\n%s, with their replacements:\n\n```\n", s.Title)
		for _, term := range s.Terms {
			fmt.Fprintf(b, "%-50s %s\n", nameOf(term), strings.TrimPrefix(term.Text, "use "))
		}
		b.WriteString("```\n")
	case s.Code != "":
		fmt.Fprintf(b, "\n%s:\n\n```\n%s```\n", s.Title, s.Code)
	default:
		fmt.Fprintf(b, "\n%s:\n\n", s.Title)
		writeTerms(b, s.Terms)
	}
}
