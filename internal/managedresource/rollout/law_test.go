package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

func member(i int) *Member {
	m := &Member{NamespacedName: types.NamespacedName{Namespace: fmt.Sprintf("n%d", i), Name: "m"}}
	if i%2 == 1 {
		m.Labels = map[string]string{"odd": "true"}
	}
	return m
}

// thing is a ManagedResource of the world: what is in the cluster, and what its content does once it is applied.
type thing struct {
	mr *resourcesv1alpha1.ManagedResource
	// content is what its Secrets have; bad says which contents fail.
	content int
	bad     map[int]bool
	// touched are the contents of which a part may be in its target.
	touched map[int]bool
	// silent is true while it reports that content waits, and never takes its turn.
	silent bool
}

// world has a group with members, and a process that decides about them. The process forgets everything when it restarts.
type world struct {
	t      *rapid.T
	group  *Group
	things []*thing
	now    time.Time
	// wanted, since and turns are what the process remembers.
	wanted       map[int]Revision
	since, turns map[int]time.Time
	seen         time.Time
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: start}
	waves := rapid.SampledFrom([]string{"[{untilPercent: 10},{untilPercent: 50}]", "[{selector: odd=true}]", "[{namespaces: [n0]},{untilPercent: 30}]"}).Draw(t, "waves")
	data := map[string]string{"waves": waves, "pause": rapid.SampledFrom([]string{"0s", "1m"}).Draw(t, "pause"), "timeout": "5m"}
	if limit := rapid.IntRange(0, 3).Draw(t, "maxUnavailable"); limit > 0 {
		data["maxUnavailable"] = fmt.Sprint(limit)
	}
	if rapid.Bool().Draw(t, "tolerates one") {
		data["maxFailed"] = "1"
	}
	var err error
	if w.group, err = Parse("garden/g", data, nil); err != nil {
		t.Fatal(err)
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "members") {
		m := member(i)
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: map[string]string{
			resourcesv1alpha1.AnnotationRolloutGroup: "g",
		}}}
		mr.Status.SecretsDataChecksum = ptr.To(sum(0))
		th := &thing{mr: mr, bad: map[int]bool{}, touched: map[int]bool{}}
		w.things = append(w.things, th)
		w.say(th, meta.Applied(resourcesv1alpha1.ConditionTrue, "x", "x"), health(resourcesv1alpha1.ConditionTrue))
	}
	w.restart()
	return w
}

// sum is a checksum whose beginning differs.
func sum(content int) string { return fmt.Sprintf("%064x", content)[48:] + strings.Repeat("0", 48) }

func rev(content int) Revision { return Revision(sum(content)) }

func health(status resourcesv1alpha1.ConditionStatus) meta.ConditionChange {
	return meta.ConditionChange{Type: resourcesv1alpha1.ResourcesHealthy, Status: status, Reason: "x", Message: "x"}
}

func (w *world) say(th *thing, changes ...meta.ConditionChange) {
	th.mr.Status.Conditions, _ = meta.Conditions(th.mr.Status.Conditions).With(w.now, changes...)
}

func (w *world) restart() {
	w.wanted, w.since, w.turns, w.seen = map[int]Revision{}, map[int]time.Time{}, map[int]time.Time{}, w.now
}

// members are what the process knows.
func (w *world) members() []*Member {
	all := make([]*Member, len(w.things))
	for i, th := range w.things {
		m := MemberOf(th.mr)
		m.Seen, m.Turn = w.seen, w.turns[i]
		if known, found := w.wanted[i]; found {
			if known != m.Wanted || m.Since.IsZero() {
				m.Since = w.since[i]
			}
			if m.Wanted = known; m.HeldSince.IsZero() {
				m.HeldSince = m.Since
			}
		}
		m.Judge(th.mr.Status.Conditions, w.group.Progressing)
		all[i] = &m
	}
	return all
}

func (w *world) decide() ([]*Member, *Roster, Decision) {
	members := w.members()
	roster := w.group.Assign(members)
	d := w.group.Decide(members, roster, w.now)
	for i := range members {
		if _, found := w.turns[i]; !d.HasTurn(i) {
			delete(w.turns, i)
		} else if !found {
			w.turns[i] = w.now
		}
	}
	return members, roster, d
}

// asked is what somebody decides who reads the cluster, and follows nothing.
func (w *world) asked() Decision {
	members := w.members()
	for i, m := range members {
		known := MemberOf(w.things[i].mr)
		m.Since, m.HeldSince, m.Seen, m.Turn = known.Since, known.HeldSince, time.Time{}, time.Time{}
	}
	return w.group.Decide(members, w.group.Assign(members), w.now)
}

// isAbsent reports whether a member has not taken its turn for the timeout.
func (w *world) isAbsent(i int, m *Member) bool {
	began, found := w.turns[i]
	return m.IsWaiting() && found && !w.now.Before(began.Add(w.group.Timeout))
}

// look has the process look at a member, as a run does: it applies what was let go, or says that it is held.
func (w *world) look(i int, crash bool) {
	th := w.things[i]
	if w.wanted[i] != rev(th.content) {
		w.wanted[i], w.since[i] = rev(th.content), w.now
		delete(w.turns, i)
	}
	members, roster, d := w.decide()
	m := members[i]
	if d.Standings[i] != Go {
		w.say(th, Held(w.group.Name, d.Standings[i], m, roster.Wave(i), roster.Len(), d.Failed))
		return
	}
	if m.Wanted == m.Applied {
		w.say(th, LetGo(m.Wanted, true))
		return
	}
	if th.silent {
		return
	}
	if m.LetGo != m.Wanted {
		w.checkLetGo(i, members, roster, d)
		th.mr.Annotations[resourcesv1alpha1.AnnotationRolloutApplied] = NewRecord(m.Wanted, w.now, nil).String()
	}
	if crash {
		return
	}
	th.touched[th.content] = true
	w.say(th, append(meta.Conditions(th.mr.Status.Conditions).Invalidation(false), LetGo(m.Wanted, false))...)
	th.mr.Status.SecretsDataChecksum = ptr.To(sum(th.content))
	w.say(th, meta.Applied(resourcesv1alpha1.ConditionTrue, "x", "x"), LetGo(m.Wanted, true))
}

// judge says what an applied content is like.
func (w *world) judge(i int) {
	th := w.things[i]
	if conditions := meta.Conditions(th.mr.Status.Conditions); conditions.Status(resourcesv1alpha1.ResourcesHealthy) != resourcesv1alpha1.ConditionUnknown {
		return
	}
	status := resourcesv1alpha1.ConditionTrue
	for content := range th.bad {
		if *th.mr.Status.SecretsDataChecksum == sum(content) {
			status = resourcesv1alpha1.ConditionFalse
		}
	}
	w.say(th, health(status))
}

// checkLetGo is the law of a turn, by what is in the cluster.
func (w *world) checkLetGo(i int, members []*Member, roster *Roster, d Decision) {
	failed, onTheirWay := 0, 0
	for j, th := range w.things {
		if j == i {
			continue
		}
		isBad := meta.Conditions(th.mr.Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy) == resourcesv1alpha1.ConditionFalse
		wants := members[j].Wanted != "" && members[j].Wanted == members[j].LetGo
		isBad = isBad && wants || w.isAbsent(j, members[j]) && !w.isAbsent(i, members[i]) && !w.group.Aborted.Has(TokenOf(members[j].NamespacedName, members[j].Wanted))
		if isBad && !w.group.Resumed.Has(TokenOf(members[j].NamespacedName, members[j].Wanted)) {
			failed++
		}
		if unknown := meta.Conditions(th.mr.Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy) == resourcesv1alpha1.ConditionUnknown; unknown && wants && w.now.Before(members[j].LetGoAt.Add(w.group.Timeout)) {
			onTheirWay++
		}
		if roster.Wave(j) >= roster.Wave(i) {
			continue
		}
		if members[j].Wanted == "" && w.now.Before(w.seen.Add(w.group.Timeout)) {
			w.t.Fatalf("ROL-4: %s is let go while nobody knows of %s", members[i], members[j])
		}
		token := TokenOf(members[j].NamespacedName, members[j].Wanted)
		if members[j].IsWaiting() && !w.isAbsent(j, members[j]) && !w.group.Resumed.Has(token) && !w.group.Aborted.Has(token) {
			w.t.Fatalf("T4-3: %s is let go while %s of an earlier wave has not taken its turn since %v", members[i], members[j], w.turns[j])
		}
		if d.Standings[j] == Waits || d.Standings[j] == Halted {
			w.t.Fatalf("ROL-4: %s of wave %d is let go while %s of wave %d waits", members[i], roster.Wave(i), members[j], roster.Wave(j))
		}
	}
	if failed > w.group.MaxFailed.Of(len(w.things)) {
		w.t.Fatalf("ROL-5: %s is let go after %d failed", members[i], failed)
	}
	if limit := w.group.MaxUnavailable.Number; limit > 0 && onTheirWay >= limit {
		w.t.Fatalf("ROL-3: %s is let go while %d are on their way", members[i], onTheirWay)
	}
	if w.group.Aborted.Has(TokenOf(members[i].NamespacedName, members[i].Wanted)) {
		w.t.Fatalf("ROL-6: %s is let go though it was aborted", members[i])
	}
}

// everybody looks at all members until nothing happens any more, for as long as pauses and timeouts may last.
func (w *world) everybody() {
	for range 2*len(w.things) + 20 {
		for i := range w.things {
			w.look(i, false)
			w.judge(i)
		}
		w.now = w.now.Add(time.Minute)
	}
}

// TestLawOfTurns: whatever happens, and wherever the process restarts, no content is let go out of its turn (ROL-4, ROL-5), what was aborted stays out until
// there is a newer one (ROL-6), and good content arrives everywhere in the end (ROL-4).
func TestLawOfTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		content := 0
		pick := func() int { return rapid.IntRange(0, len(w.things)-1).Draw(t, "member") }
		t.Repeat(map[string]func(*rapid.T){
			"change all": func(t *rapid.T) {
				content++
				for _, th := range w.things {
					th.content = content
					th.bad[content] = rapid.IntRange(0, 5).Draw(t, "bad") == 0
				}
			},
			"change one": func(*rapid.T) { content++; w.things[pick()].content = content },
			"look":       func(*rapid.T) { w.look(pick(), false) },
			"crash":      func(*rapid.T) { w.look(pick(), true); w.restart() },
			"restart":    func(*rapid.T) { w.restart() },
			"silence":    func(*rapid.T) { th := w.things[pick()]; th.silent = !th.silent },
			"judge":      func(*rapid.T) { w.judge(pick()) },
			"time": func(t *rapid.T) {
				w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 6 * time.Minute}).Draw(t, "time"))
			},
			"resume": func(*rapid.T) {
				_, _, d := w.decide()
				w.group.Resumed, w.group.Aborted = w.group.Resume(d), nil
			},
			"abort": func(*rapid.T) {
				members, _, d := w.decide()
				w.group.Aborted = w.group.Abort(members, d)
			},
		})
		w.finish(content + 1)
	})
}

// finish has good content for all, which is newer than all before, arrive everywhere.
func (w *world) finish(content int) {
	for _, th := range w.things {
		th.content, th.silent = content, false
	}
	w.everybody()
	for i, th := range w.things {
		if *th.mr.Status.SecretsDataChecksum != sum(content) {
			members, roster, d := w.decide()
			w.t.Fatalf("ROL-4: %s does not get the last content: %+v, standing %d in wave %d, decision %+v", members[i], members[i], d.Standings[i], roster.Wave(i), d)
		}
	}
}

// TestLawOfHalts: of a content that is bad where it is bad, no more members are touched than the waves up to the first bad one have, and none by a resumed or
// aborted roll-out that is not to be (ROL-5, ROL-6).
func TestLawOfHalts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.group.MaxFailed, w.group.Pause = Amount{}, time.Minute // Without a pause whoever changes first goes first.
		w.everybody()
		bad := sets.New[int]()
		for i, th := range w.things {
			th.content = 1
			if rapid.IntRange(0, 3).Draw(t, "bad") == 0 {
				th.bad[1] = true
				bad.Insert(i)
			}
		}
		w.everybody()
		if bad.Len() == 0 {
			return
		}
		members, roster, d := w.decide()
		first := len(w.group.Waves) + 2
		for i := range bad {
			first = min(first, roster.Wave(i))
		}
		var untouched []int
		for i, th := range w.things {
			if th.touched[1] && roster.Wave(i) > first {
				t.Fatalf("ROL-5: %s of wave %d is touched, and wave %d was bad", members[i], roster.Wave(i), first)
			}
			if !th.touched[1] {
				untouched = append(untouched, i)
			}
		}
		if !d.Halted {
			t.Fatalf("ROL-5: not halted: %+v", d)
		}
		if rapid.Bool().Draw(t, "abort") {
			w.group.Aborted = w.group.Abort(members, d)
			w.group.Resumed = w.group.Resume(d)
			w.restart()
			w.everybody()
			for _, i := range untouched {
				if w.things[i].touched[1] {
					t.Fatalf("ROL-6: %s is touched after the roll-out was aborted", members[i])
				}
			}
			w.finish(2)
			return
		}
		for range len(w.things) {
			_, _, d = w.decide()
			w.group.Resumed = w.group.Resume(d)
			w.restart()
			w.everybody()
		}
		if at := slices.IndexFunc(w.things, func(th *thing) bool { return !th.touched[1] }); at >= 0 {
			t.Fatalf("ROL-6: %s does not get the content though all failures were resumed", members[at])
		}
	})
}

// TestLawOfSilence: whoever does not take its turn fails after the timeout, and halts the group by that. The others get the content once that is resumed,
// also by somebody who only reads the cluster; after an abort nobody does (T4-3, ROL-5).
func TestLawOfSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.group.MaxFailed = Amount{}
		w.everybody()
		silent := sets.New[string]()
		for _, th := range w.things {
			th.content = 1
			if th.silent = rapid.IntRange(0, 2).Draw(t, "silent") == 0; th.silent {
				silent.Insert(th.mr.Namespace)
			}
		}
		if silent.Len() == 0 {
			return
		}
		w.everybody()
		_, _, d := w.decide()
		if !d.Halted {
			t.Fatalf("ROL-5: %v do not take their turns, and nothing is halted: %+v", silent, d)
		}
		for _, bad := range d.Failed {
			if !silent.Has(bad.Namespace) || !strings.Contains(bad.Why, "did not take its turn") {
				t.Fatalf("ROL-10: %s failed: %s", bad, bad.Why)
			}
		}
		if rapid.Bool().Draw(t, "abort") {
			members, _, d := w.decide()
			w.group.Aborted = w.group.Abort(members, d)
			w.everybody()
			if _, _, d := w.decide(); d.Halted {
				t.Fatalf("ROL-6: still halted after the abort: %v", d.Failed)
			}
			w.finish(2)
			return
		}
		for range w.things {
			w.group.Resumed = w.group.Resume(w.asked())
			if rapid.Bool().Draw(t, "restart") {
				w.restart()
			}
			w.everybody()
		}
		for _, th := range w.things {
			if !th.silent && !th.touched[1] {
				members, _, d := w.decide()
				t.Fatalf("T4-3: %s does not get the content though all failures were resumed: %+v, %+v", th.mr.Namespace, members, d)
			}
			th.silent = false
		}
		w.everybody()
		if at := slices.IndexFunc(w.things, func(th *thing) bool { return !th.touched[1] }); at >= 0 {
			t.Fatalf("ROL-10: %s takes no turn though it answers again", w.things[at].mr.Namespace)
		}
	})
}

// TestContentThatChanges: content that changes more often than the pause is let go after twice the pause (ROL-4).
func TestContentThatChanges(t *testing.T) {
	g := &Group{Waves: []Wave{{Namespaces: []string{"n0"}}}, Pause: 5 * time.Minute, Timeout: 10 * time.Minute}
	m := member(1)
	m.Applied, m.Seen, m.HeldSince = rev(0), start, start
	now := start
	for content := 1; ; content++ {
		m.Wanted, m.Since = rev(content), now
		now = now.Add(4 * time.Minute)
		d := g.Decide([]*Member{m}, g.Assign([]*Member{m}), now)
		if is := now.Sub(start); (d.Standings[0] == Go) != (is >= 2*g.Pause) {
			t.Fatalf("ROL-4: standing %d after %s", d.Standings[0], is)
		} else if is > time.Hour {
			return
		}
	}
}

// A member that failed before a restart halts the group, though nobody tells which content it wants, as its target cannot be reached; a resume
// ends that.
func TestFailureBeforeARestart(t *testing.T) {
	g, err := Parse("garden/g", map[string]string{"waves": "[{namespaces: [n0]}]", "pause": "0s", "timeout": "10m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	canary, m := member(0), member(1)
	canary.Seen, canary.Applied, canary.LetGo, canary.LetGoAt = start, rev(1), rev(1), start.Add(-time.Hour)
	canary.Verdict, canary.At, canary.Why = Failed, start.Add(-50*time.Minute), "ResourcesHealthy is False"
	m.Seen, m.Applied, m.Wanted, m.Since, m.HeldSince = start, rev(0), rev(1), start.Add(-time.Hour), start.Add(-time.Hour)
	members := []*Member{canary, m}
	for _, after := range []time.Duration{0, time.Minute, 11 * time.Minute, 24 * time.Hour} {
		if d := g.Decide(members, g.Assign(members), start.Add(after)); !d.Halted || d.Standings[1] != Halted || len(d.Failed) != 1 {
			t.Errorf("ROL-7/ROL-5: %s after the restart: halted %t, standing %d, failed %v", after, d.Halted, d.Standings[1], d.Failed)
		}
	}
	g.Resumed = g.Resume(g.Decide(members, g.Assign(members), start))
	if d := g.Decide(members, g.Assign(members), start.Add(time.Minute)); d.Halted || d.Standings[1] != Waits {
		t.Errorf("ROL-4: resumed, while nobody knows of the canary: halted %t, standing %d", d.Halted, d.Standings[1])
	}
	if d := g.Decide(members, g.Assign(members), start.Add(11*time.Minute)); d.Halted || d.Standings[1] != Go {
		t.Errorf("ROL-6: resumed: halted %t, standing %d", d.Halted, d.Standings[1])
	}
	if canary.Wanted != "" {
		t.Error("the member is changed")
	}
}
