package rules

// Decisions.
const (
	Allow     = "Allow"
	NoOpinion = "NoOpinion"
	Error     = "Error"
	// Undecided is the decision of a shadow policy that would have had to read an object first.
	Undecided = "Undecided"
)

// Explanation is a decision with its derivation, for the debug page. It has names of objects, never their content.
type Explanation struct {
	// Decision is Allow, NoOpinion or Error; Summary explains it.
	Decision string `json:"decision"`
	Summary  string `json:"summary"`
	Reason   string `json:"reason,omitempty"`
	// Authorizer is the name of who decided.
	Authorizer string `json:"authorizer,omitempty"`
	// Client is the type of the client, Of the vertex of its seed or shoot; empty for others.
	Client string `json:"client,omitempty"`
	Of     string `json:"of,omitempty"`
	// Rule and Step locate the decision in docs/reference/seed-authorizer-rules.md.
	Rule string `json:"rule,omitempty"`
	Step string `json:"step,omitempty"`
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
	Shadow *ShadowDecision `json:"shadow,omitempty"`
}

// ShadowDecision is the decision of a shadow policy (SHD-4).
type ShadowDecision struct {
	// Decision is Allow, NoOpinion or Undecided.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	Step     string `json:"step,omitempty"`
	// Differs is set if the policy that answers decides otherwise.
	Differs bool `json:"differs"`
}

// String is the shadow policy's decision in a line.
func (s *ShadowDecision) String() string {
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

// summarize sets the words of the decision; name is that of the authorizer.
func (e *Explanation) summarize(name string) {
	e.Authorizer = name
	switch e.Decision {
	case Allow:
		e.Summary = "allowed by the " + name
	case NoOpinion:
		e.Summary = "not allowed by the " + name + " (NoOpinion: other authorizers, such as RBAC, may still allow it)"
	default:
		e.Summary = "not decided by the " + name + " (an error)"
	}
}
