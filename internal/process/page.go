package process

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Page describes a command. Its help, its man page and its part of the reference are generated from it.
type Page struct {
	// Name is the name of the command, after that of its executable.
	Name, Short, Use string
	// Paragraphs describe the command; each has some lines.
	Paragraphs []string
	Sections   []Section
}

// Section is either a list of terms or a literal text.
type Section struct {
	Title string
	Terms []Term
	Code  string
	// Grouped is set if the section lists the names of a group of flags.
	Grouped bool
}

// The titles of sections.
const (
	CommandsTitle   = "Commands"
	FlagsTitle      = "Flags"
	DeprecatedTitle = "Deprecated flags"
	ExitCodesTitle  = "Exit codes"
	DocumentsTitle  = "Documents"
	// deprecation marks a deprecated flag; its value is the replacement.
	deprecation = "deprecated-in-favour-of"
)

// Deprecate hides a flag from usage and completion; the help lists it in a separate section.
func Deprecate(f *pflag.Flag, instead string) {
	f.Hidden = true
	f.Annotations = map[string][]string{deprecation: {instead}}
}

// grouped marks a flag of a group; its value is the heading of the group.
const grouped = "grouped-under"

// Group makes the help list a flag by name only, under a heading together with the other flags of the group.
func Group(f *pflag.Flag, heading string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[grouped] = []string{heading}
}

// widest is the maximum width of the lines of a group.
const widest = 100

// addGroups adds a section for each group of flags.
func (p *Page) addGroups(flags *pflag.FlagSet) {
	var headings []string
	lines := map[string][]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		for _, heading := range f.Annotations[grouped] {
			of := lines[heading]
			if of == nil {
				headings = append(headings, heading)
			}
			if last := len(of) - 1; last >= 0 && len(of[last])+len(f.Name)+len(" --") <= widest {
				of[last] += " --" + f.Name
			} else {
				of = append(of, "--"+f.Name)
			}
			lines[heading] = of
		}
	})
	for _, heading := range headings {
		p.add(Section{Title: heading, Code: strings.Join(lines[heading], "\n") + "\n", Grouped: true})
	}
}

// Environment are the variables that all executables read.
var Environment = []Term{
	{"KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT", "API server of the Pod's own cluster, without a kubeconfig"},
	{"KUBE_FEATURE_<name>", "true or false: a feature of the Kubernetes client library"},
	{"HTTPS_PROXY, NO_PROXY", "proxy to API servers"},
	{"TMPDIR", "folder above the default of server.webhooks.tls.serverCertDir"},
	{"GOGC, GOMEMLIMIT, GOMAXPROCS", "settings of the Go runtime"},
}

var (
	// ExitCodesOfProcess are the exit codes of all executables.
	ExitCodesOfProcess = []Term{
		{"0", "it ended in order after SIGTERM or SIGINT, or printed help or version"},
		{"1", "anything else: a wrong command line or configuration, a lost election, a refusal of an API server, a second signal, or no end within five seconds"},
	}
	// ExitCodesOfVerbs are the default exit codes of verbs.
	ExitCodesOfVerbs = []Term{{"0", "success"}, {"1", "failure; stderr has the reason"}}
)

// page describes a command of the executable: itself or one of its verbs.
func (c *Command) page(cmd *cobra.Command) *Page {
	cmd.InitDefaultHelpFlag()
	p := &Page{Name: cmd.CommandPath(), Short: cmd.Short, Use: cmd.UseLine()}
	if cmd.Long != "" {
		p.Paragraphs = strings.Split(strings.TrimSpace(cmd.Long), "\n\n")
	}
	if terms := verbs(cmd); len(terms) > 0 {
		p.add(Section{Title: CommandsTitle, Terms: terms})
	}
	p.add(Section{Title: FlagsTitle, Terms: flagTerms(cmd.NonInheritedFlags(), false)})
	p.addGroups(cmd.NonInheritedFlags())
	if cmd.HasParent() {
		p.add(Section{Title: ExitCodesTitle, Terms: exitCodesOf(cmd)})
		return p
	}
	if c.Prepare == nil {
		p.add(Section{Title: "Environment", Terms: c.Environment})
		p.add(Section{Title: DocumentsTitle, Code: strings.Join(c.Documents, "\n") + "\n"})
		return p
	}
	p.add(Section{Title: DeprecatedTitle, Terms: flagTerms(cmd.NonInheritedFlags(), true)})
	p.add(Section{Title: "Environment", Terms: slices.Concat(c.Environment, Environment)})
	p.add(Section{Title: ExitCodesTitle, Terms: ExitCodesOfProcess})
	p.add(Section{Title: "Smallest configuration", Code: c.Smallest})
	p.add(Section{Title: DocumentsTitle, Code: strings.Join(c.Documents, "\n") + "\n"})
	return p
}

// exitCodesOf returns the exit codes of a verb.
func exitCodesOf(cmd *cobra.Command) []Term {
	var terms []Term
	for line := range strings.Lines(cmd.Annotations[codesOfVerb]) {
		name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		terms = append(terms, Term{name, text})
	}
	if terms == nil {
		return ExitCodesOfVerbs
	}
	return terms
}

func (p *Page) add(s Section) {
	if len(s.Terms) > 0 || strings.TrimSpace(s.Code) != "" {
		p.Sections = append(p.Sections, s)
	}
}

func verbs(cmd *cobra.Command) []Term {
	var terms []Term
	for _, verb := range cmd.Commands() {
		if documented(verb) {
			terms = append(terms, Term{verb.Name(), verb.Short})
		}
	}
	return terms
}

// isDeprecated reports whether a flag is marked by Deprecate.
func isDeprecated(f *pflag.Flag) bool { return len(f.Annotations[deprecation]) > 0 }

func flagTerms(flags *pflag.FlagSet, deprecated bool) []Term {
	var terms []Term
	flags.VisitAll(func(f *pflag.Flag) {
		if isDeprecated(f) != deprecated || f.Hidden && !deprecated || f.Annotations[grouped] != nil {
			return
		}
		kind, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" && f.NoOptDefVal == "" {
			name += " " + kind
		}
		if deprecated {
			text = "use " + f.Annotations[deprecation][0]
		} else if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			text += " (default " + f.DefValue + ")"
		}
		terms = append(terms, Term{name, text})
	})
	return terms
}

// text returns the output of --help.
func (p *Page) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Short)
	for _, paragraph := range p.Paragraphs {
		fmt.Fprintf(&b, "\n%s\n", paragraph)
	}
	fmt.Fprintf(&b, "\nUsage:\n  %s\n", p.Use)
	for _, s := range p.Sections {
		b.WriteString("\n" + s.text())
	}
	return b.String()
}

// column is the width up to which the text of a name is on the same line.
const column = 40

func (s Section) text() string {
	var b strings.Builder
	b.WriteString(s.Title + ":\n")
	width := 0
	for _, term := range s.Terms {
		if len(term.Name) <= column {
			width = max(width, len(term.Name))
		}
	}
	for _, term := range s.Terms {
		if len(term.Name) > column {
			fmt.Fprintf(&b, "  %s\n  %-*s  %s\n", term.Name, width, "", term.Text)
		} else {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, term.Name, term.Text)
		}
	}
	for line := range strings.Lines(s.Code) {
		b.WriteString("  " + line)
	}
	return b.String()
}
