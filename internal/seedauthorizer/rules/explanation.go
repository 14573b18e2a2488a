package rules

// Decisions.
const (
	Allow     = "Allow"
	NoOpinion = "NoOpinion"
	Error     = "Error"
	// Undecided is the decision of a shadow policy that would have to read an object first.
	Undecided = "Undecided"
)

// Explanation is a decision with its derivation, for the debug page. It has names of objects, never their content.
type Explanation struct {
	// Decision is Allow, NoOpinion or Error; Summary explains it.
	Decision string `json:"decision"`
	Summary  string `json:"summary"`
	Reason   string `json:"reason,omitempty"`
	// Authorizer is the name of the authorizer that decided.
	Authorizer string `json:"authorizer,omitempty"`
	// Client is the type of the client, and Of the vertex of its seed or shoot; empty for other users.
	Client string `json:"client,omitempty"`
	Of     string `json:"of,omitempty"`
	// Rule and Step locate the decision in docs/reference/seed-authorizer-rules.md.
	Rule string `json:"rule,omitempty"`
	Step string `json:"step,omitempty"`
	// Path is the path from the object to the seed, if the graph was checked and there is one.
	Path []string `json:"path,omitempty"`
	// Instead are paths from the object that do not end at the seed, and Missing the links of the likeliest
	// candidate, one in each line.
	Instead []string `json:"instead,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Candidates are the smallest sets of links that would allow it, the likeliest first.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Notes are further relevant facts.
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
	// Differs is set if the policy in effect decides differently.
	Differs bool `json:"differs"`
}

// String returns the shadow policy's decision in one line.
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

// Candidate is a minimal set of links that would allow a request.
type Candidate struct {
	Links []Link `json:"links"`
	// Path is the path that the links would make.
	Path []string `json:"path"`
}

// Link is a missing edge.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Rule is the rule of the edge, and Says the fields or the condition that make it.
	Rule string `json:"rule"`
	Says string `json:"says"`
	// Object is the object that would have to contribute the edge; New is set if no such object is known.
	Object string `json:"object"`
	New    bool   `json:"new,omitempty"`
	// Writer is the usual writer of the object.
	Writer string `json:"writer"`
}

// String returns the link in one line.
func (l *Link) String() string { return l.From + " -> " + l.To + " (" + l.Rule + ": " + l.Says + ")" }

// summarize sets the texts of the decision; name is that of the authorizer.
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
