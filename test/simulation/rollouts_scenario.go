package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// rollingOut is a scenario of a roll-out group. The letter r before a seed asks for one.
type rollingOut struct {
	On bool
	// Members is how many ManagedResources the group has at the start. One more is in no group.
	Members int
	// Group is what the ConfigMap says at the start.
	Group groupText
	// InPlace is true if writers overwrite Secrets; otherwise each content has a Secret of its own, as gardenlet makes them.
	InPlace bool
	// End is how the roll-out ends: endMended, endResumed or endAborted.
	End string
}

// Ends of a roll-out.
const (
	endMended  = "mended"
	endResumed = "resumed"
	endAborted = "aborted"
)

// groupText is what the ConfigMap of a group says: the number of its waves, and the values of other keys.
type groupText struct {
	Waves          int
	Pause, Timeout time.Duration
	// MaxUnavailable and MaxFailed are numbers of members; 0 leaves the key out.
	MaxUnavailable, MaxFailed int
}

func (r rollingOut) String() string {
	return fmt.Sprintf("  roll-out group: %d members, waves %s, pause %v, timeout %v, maxUnavailable %d, maxFailed %d, Secrets overwritten %t, in the end %s\n",
		r.Members, someWaves[r.Group.Waves].text, r.Group.Pause, r.Group.Timeout, r.Group.MaxUnavailable, r.Group.MaxFailed, r.InPlace, r.End)
}

// calmRollouts are the steps of scenarios without disturbances, in which it is clear when what has to happen.
var (
	calmRollouts = []string{
		"revise", "revise", "revise", "revise", "revise-slowly", "revise-slowly", "revise-one", "revise-one", "revert",
		"sick", "well", "resume", "resume", "abort", "drift", "drift", "drift-delete", "collect",
		"group-delete", "group-put", "group-put", "group-malform", "group-edit", "leave", "join", "member-delete",
	}
	rolloutTroubles = []string{"crash", "crash", "handover", "handover", "cut", "stall", "deny", "compact", "down"}
	// rolloutWaits are from shorter than what gathers news to longer than most pauses.
	rolloutWaits = []time.Duration{
		0, 3 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 600 * time.Millisecond, 3 * time.Second, 12 * time.Second, 50 * time.Second, 2 * time.Minute, 6 * time.Minute,
	}
)

// drawRollouts draws a scenario with a roll-out group. One in six has the configuration and nobody in a group: then everything is as it is without.
func drawRollouts(t *rapid.T) *Scenario {
	if rapid.IntRange(0, 5).Draw(t, "nobody in a group") == 0 {
		s := drawScenario(t)
		s.Rollouts.On = true
		return s
	}
	s := &Scenario{Seed: rapid.Uint64().Draw(t, "seed"), Pace: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "pace")}
	s.Rollouts = rollingOut{
		On: true, Members: rapid.IntRange(2, 7).Draw(t, "members"),
		Group:   drawGroup(t),
		InPlace: rapid.IntRange(0, 3).Draw(t, "in place") == 0,
		End:     rapid.SampledFrom([]string{endMended, endResumed, endAborted}).Draw(t, "end"),
	}
	kinds := calmRollouts
	if rapid.Bool().Draw(t, "disturbed") {
		kinds = append(kinds[:len(kinds):len(kinds)], rolloutTroubles...)
		s.Faults = rapid.SliceOfN(rapid.Custom(drawRolloutFault), 0, 5).Draw(t, "faults")
	}
	s.Steps = append(s.Steps, drawRolloutStep(t, []string{"revise", "revise-slowly"}))
	for range rapid.IntRange(0, 9).Draw(t, "steps") {
		s.Steps = append(s.Steps, drawRolloutStep(t, kinds))
	}
	if rapid.IntRange(0, 2).Draw(t, "inattentive") == 2 {
		for range rapid.IntRange(1, 4).Draw(t, "inattentive steps") {
			s.Steps = slices.Insert(s.Steps, rapid.IntRange(0, len(s.Steps)).Draw(t, "before"), drawRolloutStep(t, inattentions))
		}
	}
	return s
}

// inattentions keep a member from taking its turn, or its objects from having its content, for a while.
var inattentions = []string{"ignore-member", "ignore-member", "heed-member", "hold-member", "hold-member", "free-member"}

func drawGroup(t *rapid.T) groupText {
	g := groupText{
		Waves: rapid.IntRange(0, len(someWaves)-1).Draw(t, "waves"), Pause: rapid.SampledFrom([]time.Duration{0, time.Minute, 2 * time.Minute}).Draw(t, "pause"),
		Timeout: rapid.SampledFrom([]time.Duration{3 * time.Minute, 10 * time.Minute}).Draw(t, "timeout"),
	}
	if rapid.Bool().Draw(t, "limited") {
		g.MaxUnavailable = rapid.IntRange(1, 2).Draw(t, "maxUnavailable")
	}
	if rapid.IntRange(0, 3).Draw(t, "tolerant") == 0 {
		g.MaxFailed = 1
	}
	return g
}

func drawRolloutStep(t *rapid.T, kinds []string) Step {
	step := Step{
		Wait: rapid.SampledFrom(rolloutWaits).Draw(t, "wait"), Do: rapid.SampledFrom(kinds).Draw(t, "do"),
		A: rapid.IntRange(0, 8).Draw(t, "a"), B: rapid.IntRange(0, 8).Draw(t, "b"),
	}
	if strings.HasPrefix(step.Do, "revise") {
		step.Fields = drawBad(t)
	}
	return step
}

// These letters name the effect of a content on its member.
const (
	good      = '.'
	unhealthy = 'u'
	// unserved has an object whose kind is not served, so that the content cannot be applied to the end.
	unserved = 'k'
)

// drawBad says for each member what a content does to it. Half of the contents are good for all.
func drawBad(t *rapid.T) string {
	var b strings.Builder
	isGood := rapid.Bool().Draw(t, "good")
	for range mostMembers {
		kind := good
		if !isGood {
			kind = rapid.SampledFrom([]rune{good, good, good, unhealthy, unserved}).Draw(t, "does")
		}
		b.WriteRune(kind)
	}
	return b.String()
}

// drawRolloutFault draws a fault of a request after the start.
func drawRolloutFault(t *rapid.T) Fault {
	f := drawFault(t)
	f.Cluster, f.Nth = rapid.SampledFrom([]string{"source", "source", "target"}).Draw(t, "of"), rapid.IntRange(1, 40).Draw(t, "after the start")
	return f
}

// take lets a step happen.
func (r *rollouts) take(step Step) {
	resource := []string{"configmaps", "managedresources", "secrets", ""}[step.A%4]
	cluster, server := "source", r.source
	if step.A%4 == 3 && step.B%2 == 1 {
		cluster, server, resource = "target", r.target, []string{"configmaps", "deployments"}[step.B/2%2]
	}
	cuts := func() {
		server.CutWatches(resourceIs(resource))
	}
	i := step.A % r.scenario.Rollouts.Members
	lasts := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}[step.B%3]
	switch step.Do {
	case "revise":
		r.revise(step, 0)
	case "revise-slowly":
		r.revise(step, time.Duration(1+step.B)*time.Second)
	case "revise-one":
		r.number++
		r.deliver(i, r.number, step.Fields)
	case "revert":
		r.revert(i)
	case "sick", "well":
		r.sicken(i, step.Do == "sick")
	case "resume", "abort":
		r.kubectl(step.Do)
	case "drift":
		r.drift(i, step.B)
	case "drift-delete":
		r.driftDelete(i, step.B)
	case "collect":
		r.collectSecrets()
	case "group-delete":
		r.remove(r.source, groupKey)
	case "group-put":
		r.putGroup(r.group.text)
	case "group-malform":
		r.malformGroup(step.B)
	case "group-edit":
		r.editGroup(step)
	case "leave", "join":
		r.join(i, step.Do == "join")
	case "ignore-member":
		r.annotateAll(r.source, memberKey(i), object{resourcesv1alpha1.AnnotationIgnore: "true"})
	case "heed-member":
		r.annotateAll(r.source, memberKey(i), object{resourcesv1alpha1.AnnotationIgnore: nil})
	case "hold-member":
		lasts := []time.Duration{20 * time.Second, 4 * time.Minute, time.Hour}[step.B%3]
		r.annotateAll(r.source, memberKey(i), object{resourcesv1alpha1.AnnotationLeaveAloneUntil: time.Now().Add(lasts).UTC().Format(time.RFC3339)})
	case "free-member":
		r.annotateAll(r.source, memberKey(i), released)
	case "member-delete":
		r.remove(r.source, memberKey(i))
	case "cut":
		cuts()
	case "stall":
		r.disturb(r.stalled, cluster+"/"+resource, lasts)
	case "deny":
		r.disturb(r.denied, cluster+"/"+resource, lasts)
		cuts()
	default:
		r.world.take(step)
	}
}
