package explain

import (
	"strings"

	"github.com/espalier-project/espalier/internal/plaintext"
)

// Decisions.
const (
	Allow     = "Allow"
	Deny      = "Deny"
	NoOpinion = "NoOpinion"
	Error     = "Error"
)

// Answer is a decision with its derivation, for people.
type Answer struct {
	// Decision is Allow, Deny, NoOpinion or Error; Summary explains it.
	Decision string `json:"decision"`
	Summary  string `json:"summary"`
	Reason   string `json:"reason,omitempty"`
	// Authorizer is the name of who decided.
	Authorizer string `json:"authorizer,omitempty"`
	// Client is the type of the client, Of the vertex of its seed or shoot; empty for others.
	Client string `json:"client,omitempty"`
	Of     string `json:"of,omitempty"`
	// Rule and Step locate the decision in the rules; RuleSays and StepSays are their texts.
	Rule     string `json:"rule,omitempty"`
	RuleSays string `json:"ruleSays,omitempty"`
	Step     string `json:"step,omitempty"`
	StepSays string `json:"stepSays,omitempty"`
	// Path from the object to the seed, if the graph was asked and there is one.
	Path []string `json:"path,omitempty"`
	// Instead are paths from the object that end elsewhere, Missing the links of the likeliest candidate, a line each.
	Instead []string `json:"instead,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Candidates are the smallest sets of links that would allow it, the likeliest first.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Notes are further facts that count.
	Notes []string `json:"notes,omitempty"`
	// Shadow is the decision of the shadow policy; nil without one.
	Shadow *Shadow `json:"shadow,omitempty"`
}

// Undecided is the decision of a shadow policy that would have had to read an object first.
const Undecided = "Undecided"

// Shadow is the decision of a shadow policy (SHD-4).
type Shadow struct {
	// Decision is Allow, Deny, NoOpinion or Undecided.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	Step     string `json:"step,omitempty"`
	// Differs is set if the policy that answers decides otherwise.
	Differs bool `json:"differs"`
}

// String is the shadow policy's decision in a line.
func (s *Shadow) String() string {
	if !s.Differs && s.Decision != Undecided {
		return "decides alike"
	}
	text := "decides " + s.Decision
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// Candidate is a set of links of which none can be left out.
type Candidate struct {
	Links []Link `json:"links"`
	// Path is the way that there would be.
	Path []string `json:"path"`
}

// Link is an edge that is not there.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Rule of the edge, and Says what makes it.
	Rule string `json:"rule"`
	Says string `json:"says"`
	// Object would have to contribute the edge; New is set if no such object is known.
	Object string `json:"object"`
	New    bool   `json:"new,omitempty"`
	// Writer is its usual writer.
	Writer string `json:"writer"`
}

// String is the link in a line.
func (l *Link) String() string { return l.From + " -> " + l.To + " (" + l.Rule + ": " + l.Says + ")" }

// Summarize sets the words of the decision; name is that of the authorizer.
func (a *Answer) Summarize(name string) {
	a.Authorizer = name
	switch a.Decision {
	case Allow:
		a.Summary = "allowed by the " + name
	case Deny:
		a.Summary = "denied by the " + name + " (Deny: no other authorizer is asked)"
	case NoOpinion:
		a.Summary = "not allowed by the " + name + " (NoOpinion: other authorizers, such as RBAC, may still allow it)"
	default:
		a.Summary = "not decided by the " + name + " (an error)"
	}
}

// Text is the answer for people.
func (a *Answer) Text(q *Question) string {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(plaintext.Line(strings.Join(parts, "")) + "\n") }
	line(q.Text(), ": ", a.Summary)
	if a.Client != "" {
		line("  client: the ", a.Client, " of ", a.Of)
	} else {
		line("  client: ", q.User, " is not a client of this authorizer")
	}
	if a.Reason != "" {
		line("  reason: ", a.Reason)
	}
	if a.Rule != "" {
		line("  rule:   ", a.Rule, said(a.RuleSays))
	}
	if a.Step != "" {
		line("  step:   ", a.Step, said(a.StepSays))
	}
	if len(a.Path) > 0 {
		line("  path:   ", strings.Join(a.Path, " -> "))
	}
	for i, way := range a.Instead {
		title := "          "
		if i == 0 {
			title = "  leads:  "
		}
		line(title, way)
	}
	if a.Shadow != nil {
		line("  shadow: ", a.Shadow.String())
	}
	a.candidates(line)
	for _, note := range a.Notes {
		line("  note:   ", note)
	}
	return b.String()
}

// candidates writes the sets of missing links.
func (a *Answer) candidates(line func(parts ...string)) {
	for i, c := range a.Candidates {
		title := "  or:"
		if i == 0 {
			title = "  missing, the likeliest first:"
		}
		line(title)
		for j := range c.Links {
			l := &c.Links[j]
			line("    ", l.String())
			exists := ""
			if l.New {
				exists = ", which is not known"
			}
			line("      in ", l.Object, exists, "; written by ", l.Writer)
		}
	}
}

func said(meaning string) string {
	if meaning == "" {
		return ""
	}
	return ", " + meaning
}

// Text is the question in a line: verb, resource and object.
func (q *Question) Text() string {
	text := q.Verb + " " + q.Resource
	if q.Group != "" {
		text += "." + q.Group
	}
	if q.Subresource != "" {
		text += "/" + q.Subresource
	}
	if q.Namespace != "" || q.Name != "" {
		text += " " + strings.Trim(q.Namespace+"/"+q.Name, "/")
	}
	return text
}
