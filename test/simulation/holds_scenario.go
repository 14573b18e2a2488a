package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// holding is what scenarios with holds have besides. The letter h before a seed asks for them: without it, each seed draws what it drew before there
// were any.
type holding struct {
	On bool
	// Allow is allowHolds of the configuration.
	Allow bool
	// Release is true if all holds are released before the last look.
	Release bool
}

func (h holding) String() string {
	return fmt.Sprintf("  holds: allowed by the configuration %t, released in the end %t\n", h.Allow, h.Release)
}

var (
	// calmKinds are the steps of scenarios in which nothing else happens: in those it is clear when which hold has to end.
	calmKinds = []string{
		"leave-object", "leave-object", "leave-object", "leave-mr", "leave-mr", "release-object", "release-mr", "allow",
		"drift", "drift", "drift", "drift-label", "drift-label", "drift-delete", "labels",
	}
	holdKinds = append(calmKinds[:len(calmKinds):len(calmKinds)], "secret", "mr", "mr-delete", "keep", "crash", "handover", "pause")
	// holdWaits let instances hear of a hold before something happens to what it is about.
	holdWaits = []time.Duration{20 * time.Millisecond, 3 * time.Second, 12 * time.Second, 12 * time.Second, 25 * time.Second, 50 * time.Second}
)

// drawHolds draws a scenario, and what it has besides for the sake of holds.
func drawHolds(t *rapid.T) *Scenario {
	s := drawScenario(t)
	s.Holds = holding{On: true, Allow: rapid.IntRange(0, 2).Draw(t, "allow") > 0, Release: rapid.Bool().Draw(t, "release")}
	if s.References[0] == 0 {
		s.References[0] = 1
	}
	kinds := holdKinds
	if rapid.Bool().Draw(t, "calm") {
		kinds = calmKinds
		s.Steps, s.Faults, s.Classes = nil, nil, false
	}
	for range rapid.IntRange(2, 7).Draw(t, "hold steps") {
		steps := drawHoldSteps(t, kinds)
		s.Steps = slices.Insert(s.Steps, rapid.IntRange(0, len(s.Steps)).Draw(t, "before"), steps...)
	}
	return s
}

// drawHoldSteps draws a step, and after one that has something left alone often one that changes the very object.
func drawHoldSteps(t *rapid.T, kinds []string) []Step {
	step := Step{
		Wait: rapid.SampledFrom(holdWaits).Draw(t, "wait"), Do: rapid.SampledFrom(kinds).Draw(t, "do"),
		A: rapid.IntRange(0, 8).Draw(t, "a"), B: rapid.IntRange(0, 8).Draw(t, "b"),
	}
	steps := []Step{step}
	switch step.Do {
	case "leave-object", "leave-mr":
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			change := Step{
				Wait: rapid.SampledFrom(holdWaits).Draw(t, "wait"), Do: rapid.SampledFrom([]string{"drift", "drift", "drift-label", "drift-delete", "labels"}).Draw(t, "do"),
				A: step.A, B: rapid.IntRange(0, 8).Draw(t, "b"),
			}
			if step.Do == "leave-mr" && change.Do != "labels" {
				change.A = rapid.IntRange(0, 8).Draw(t, "a")
			}
			steps = append(steps, change)
		}
	case "secret":
		steps[0].Content = drawContent(t, []string{"first", "second"}[step.A%2])
	}
	return steps
}

// driftedLabel is a label that no ManagedResource injects. Where none is wanted it may stay, as somebody else's (MRL-6).
const driftedLabel = "9"

// malformed is the number of the step whose time is none.
const malformed = 7

// aheads are for how long steps have something left alone: some seconds, some minutes, hours, until the past, and for longer than is allowed. None is so
// near to what is allowed that it matters when an instance first sees it.
var aheads = [9]time.Duration{
	5 * time.Second, 20 * time.Second, -time.Hour, 70 * time.Second, 4 * time.Minute, 23 * time.Hour, 23 * time.Hour, malformed: 0, 30 * time.Hour,
}

func untilText(number int) string {
	if number == malformed {
		return "tomorrow"
	}
	return time.Now().Add(aheads[number]).UTC().Format(time.RFC3339)
}

// takeHold lets a step happen that only scenarios with holds have.
func (w *world) takeHold(step Step, t *thing) {
	leave := object{
		resourcesv1alpha1.AnnotationLeaveAloneUntil: untilText(step.B), resourcesv1alpha1.AnnotationLeaveAloneReason: "an\nemergency",
	}
	switch step.Do {
	case "leave-object":
		w.annotateAll(w.target, w.keyOf(t), leave)
	case "leave-mr":
		w.annotateAll(w.source, mrKey(step.A%3), leave)
	case "release-object":
		w.annotateAll(w.target, w.keyOf(t), released)
	case "release-mr":
		w.annotateAll(w.source, mrKey(step.A%3), released)
	case "allow":
		w.annotate(mrKey(step.A%3), resourcesv1alpha1.AnnotationAllowHolds, []any{"true", "false", nil}[step.B%3])
	case "drift-label":
		w.editThing(t, func(o object) {
			labels := object{}
			if present, ok := fake.Meta(o)["labels"].(map[string]any); ok {
				maps.Copy(labels, present)
			}
			delete(labels, "sim")
			if step.B%2 == 1 {
				labels["sim"] = driftedLabel
			}
			fake.Meta(o)["labels"] = labels
		})
	default:
		w.takeMore(step, t)
	}
}

// released are the annotations of a hold that is ended by hand.
var released = object{
	resourcesv1alpha1.AnnotationLeaveAloneUntil: nil, resourcesv1alpha1.AnnotationLeaveAloneReason: nil,
}

func (w *world) annotateAll(server *fake.Server, key fake.Key, annotations object) {
	w.request(server, http.MethodPatch, w.pathOf(server, key), object{"metadata": object{"annotations": annotations}})
}

// release ends all holds by hand, if the scenario says so.
func (w *world) release() {
	if !w.scenario.Holds.Release {
		return
	}
	for i := range w.scenario.References {
		w.annotateAll(w.source, mrKey(i), released)
	}
	for _, t := range things {
		w.annotateAll(w.target, w.keyOf(t), released)
	}
}
