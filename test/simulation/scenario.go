package simulation

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// Scenario is what happens in one run.
type Scenario struct {
	Seed uint64
	// Pace says how different delays are: 0 for nearly the same, 2 for up to some seconds.
	Pace    int
	Secrets [2]content
	// References are bits: which Secrets each ManagedResource has; 0 for one that is not there at the start.
	References [3]int
	// Strangers are objects that are on the target before anybody of us is.
	Strangers content
	// Widgets is 0 if their kind is not served at the start, 1 if they are namespaced, 2 if they are not.
	Widgets int
	// Classes is true if an instance of another class runs, too.
	Classes bool
	// Act names the controllers that run in the place of the engine; empty for the engine.
	Act    string
	Steps  []Step
	Faults []Fault
	// More is what about half of the scenarios have besides.
	More additions
	// Holds is what scenarios with holds have besides.
	Holds holding
}

// Step is something that users, other writers, operators or the ground do.
type Step struct {
	Wait    time.Duration
	Do      string
	A, B    int
	Content content
}

// Fault hits the n-th request of its class.
type Fault struct {
	Cluster string
	Class   string // write, read, watch
	Nth     int
	What    string
}

// String tells the scenario line by line.
func (s *Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, pace %d, secrets %v, references %v, strangers %v, widgets %d, classes %t\n", s.Seed, s.Pace, s.Secrets, s.References, s.Strangers, s.Widgets, s.Classes)
	if s.Act != "" {
		b.Reset()
		fmt.Fprintf(&b, "seed %d, pace %d, %s\n", s.Seed, s.Pace, s.Act)
	}
	if s.More.On {
		b.WriteString(s.More.String())
	}
	if s.Holds.On {
		b.WriteString(s.Holds.String())
	}
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "  after %v: %s\n", step.Wait, step)
	}
	for _, fault := range s.Faults {
		fmt.Fprintf(&b, "  %s no. %d of %s: %s\n", fault.Class, fault.Nth, fault.Cluster, fault.What)
	}
	return b.String()
}

func (s Step) String() string {
	text := fmt.Sprintf("%s %d %d", s.Do, s.A, s.B)
	if s.Content != nil {
		text += " " + s.Content.String()
	}
	return text
}

var (
	waits = []time.Duration{
		0, time.Millisecond, 3 * time.Millisecond, 7 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond,
		600 * time.Millisecond, 3 * time.Second, 12 * time.Second, 50 * time.Second,
	}
	stepKinds = []string{
		"secret", "secret", "secret", "secret-delete", "secret-recreate", "mr", "mr", "mr-delete", "mr-recreate", "reconcile", "ignore", "keep",
		"labels", "class", "drift", "drift", "drift-delete", "create", "hold", "let-go", "strip", "crd", "crd-delete", "crash", "handover",
		"cut", "stall", "stall", "deny", "forbid", "compact", "down", "restore",
	}
	// faultKinds with "-done" and "lost" fail although the write happened. In "meddle" somebody else changes, or deletes, the
	// object at once, before the answer arrives.
	faultKinds = []string{"500", "429", "504", "504-done", "409", "reset", "lost", "lost", "crash", "crash-done", "slow", "meddle", "meddle", "meddle-delete"}
)

func drawContent(t *rapid.T, label string) content {
	c := content{}
	for i := range things {
		if things[i].name == "fixed" && label != "first" {
			continue // Two that want different ones delete each other's for ever, as they must.
		}
		if value := rapid.IntRange(0, 9).Draw(t, label+" "+things[i].name); value >= 5 {
			c[i] = value - 5
		}
	}
	return c
}

func drawStep(t *rapid.T) Step {
	step := Step{
		Wait: rapid.SampledFrom(waits).Draw(t, "wait"), Do: rapid.SampledFrom(stepKinds).Draw(t, "do"),
		A: rapid.IntRange(0, 8).Draw(t, "a"), B: rapid.IntRange(0, 8).Draw(t, "b"),
	}
	if step.Do == "secret" || step.Do == "secret-recreate" {
		step.Content = drawContent(t, []string{"first", "second"}[step.A%2])
	}
	return step
}

func drawFault(t *rapid.T) Fault {
	return Fault{
		Cluster: rapid.SampledFrom([]string{"source", "target"}).Draw(t, "cluster"),
		Class:   rapid.SampledFrom([]string{"write", "write", "write", "read", "watch"}).Draw(t, "class"),
		Nth:     rapid.IntRange(1, 20).Draw(t, "nth"), What: rapid.SampledFrom(faultKinds).Draw(t, "what"),
	}
}

// drawScenario draws a small world: one to three ManagedResources over one or two Secrets, and up to ten steps.
func drawScenario(t *rapid.T) *Scenario {
	s := &Scenario{
		Seed: rapid.Uint64().Draw(t, "seed"), Pace: rapid.IntRange(0, 2).Draw(t, "pace"),
		Secrets: [2]content{drawContent(t, "first"), drawContent(t, "second")},
		Widgets: rapid.IntRange(0, 2).Draw(t, "widgets"),
		Steps:   rapid.SliceOfN(rapid.Custom(drawStep), 0, 10).Draw(t, "steps"),
		Faults:  rapid.SliceOfN(rapid.Custom(drawFault), 0, 4).Draw(t, "faults"),
	}
	if rapid.IntRange(0, 3).Draw(t, "strange") == 0 {
		s.Strangers = drawContent(t, "first")
	}
	for i := range s.References {
		s.References[i] = rapid.IntRange(0, 3).Draw(t, "references")
	}
	drawMore(t, s)
	for _, step := range s.Steps {
		s.Classes = s.Classes || step.Do == "class"
	}
	return s
}
