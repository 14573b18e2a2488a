package simulation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants of roll-out groups. They follow from the contract (ROL-1 … ROL-9), and share no code with the engine.
const (
	keepsTurns    = "no content is applied out of its turn"
	keepsHalts    = "a halted or aborted content is not applied"
	keepsLimit    = "no more members are on their way than may"
	keepsFormer   = "what waits keeps what was applied last"
	endsRollouts  = "a roll-out goes on, unless it is halted, aborted or without its group"
	tellsRollouts = "a member says whether, and why, it is held back"
	sparesOthers  = "what is in no group does not wait"
)

// groupState is what the ConfigMap of the group says.
type groupState struct {
	// text is what was last written by intent.
	text groupText
	// names is what the conditions have to name while the ConfigMap means no group; empty if it does.
	names            string
	resumed, aborted map[string]bool
	// since is when it last changed, unreadable since when it means no group.
	since, unreadable time.Time
}

// memberState is what is known of a ManagedResource, and when it changed.
type memberState struct {
	i int
	// there is false for one that is gone or being deleted, isMember true for one of the group; joined is when either changed.
	there, isMember bool
	joined          time.Time
	// ignored is true while nobody looks after it, inattentive while its objects may be left alone, too; attentive is since when neither is the case.
	ignored, inattentive bool
	attentive            time.Time
	// wanted is the revision that its Secret has, applied the one in its status, record what was let go.
	wanted, applied string
	record          recordText
	// changed is when wanted last changed, first when each content was first wanted.
	changed time.Time
	first   map[string]time.Time
	// allowed is when each content was last one that its objects may have, passed when it first passed the gate.
	allowed, passed map[string]time.Time
	// failed are the contents with which it failed.
	failed map[string]bool
	// waiting, behind and failing are since when its content waits, it holds up later waves, and it has failed; zero if it does not. broken is since when
	// its Deployment is not available.
	waiting, behind, failing, broken time.Time
	// touched is when somebody else last changed an object.
	touched    map[fake.Key]time.Time
	conditions map[resourcesv1alpha1.ConditionType]object
}

func newMemberState(i int) *memberState {
	return &memberState{
		i: i, first: map[string]time.Time{}, allowed: map[string]time.Time{}, passed: map[string]time.Time{}, failed: map[string]bool{},
		touched: map[fake.Key]time.Time{},
	}
}

// memberToken is the digest of a member and a revision, by which people resume and abort (ROL-6), and by which members have their turns (ROL-3).
func memberToken(i int, revision string) string {
	key := memberKey(i)
	digest := sha256.Sum256([]byte(key.Namespace + "/" + key.Name + "\n" + revision))
	return hex.EncodeToString(digest[:16])
}

// slack is how long it may take until every instance goes by what has happened. Without disturbances that is what ROL-5 allows.
func (r *rollouts) slack() time.Duration {
	if r.isDisturbed() {
		return patience + r.lag
	}
	const halts, requests = 2 * time.Second, 20
	return halts + requests*r.newsWithin()
}

// sourceChanged observes the source.
func (r *rollouts) sourceChanged(c fake.Change) {
	if r.members == nil {
		return // The namespaces of the beginning.
	}
	if isInstance(c.By) && (c.Key.GroupResource == secretResource || c.Key.GroupResource == configs) {
		r.violateLocked(keepsFormer, "%s %ss %s", c.By, c.Verb, c.Key)
	}
	i, is := memberOf(c.Key)
	switch {
	case c.Key == groupKey:
		r.traceLocked("-- %s: %s", c.Key, later(func() string { return shown(c.After) }))
		r.readGroup(c.After)
	case is && isInstance(c.By):
		r.traceLocked("-- %s %ss %s: %s", c.By, c.Verb, c.Key.Name, later(func() string { return r.summaryOfMember(c.After) }))
		if c.Before != nil && c.After != nil {
			r.checkRecord(i, c)
			r.checkApplied(i, c)
		}
	case is:
		r.traceLocked("-- %s: %s", c.Key, later(func() string { return marshal(c.After["spec"]) + marshal(fake.Meta(c.After)["annotations"]) }))
	case c.Key.GroupResource != secretResource:
		return
	}
	r.look()
	if is && i == r.outsider() {
		r.checkOutsider(c)
	}
}

func (r *rollouts) summaryOfMember(mr object) string {
	if mr == nil {
		return "gone"
	}
	held := conditionIn(mr, resourcesv1alpha1.RolloutHeld)
	return fmt.Sprintf("%s, held %s %s, record %s", summaryOf(mr), held["reason"], held["message"], fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationRolloutApplied))
}

// readGroup notes what the ConfigMap says from now on.
func (r *rollouts) readGroup(o object) {
	now := time.Now()
	g := groupState{text: r.group.text, since: now, resumed: map[string]bool{}, aborted: map[string]bool{}}
	data, _ := o["data"].(map[string]any)
	annotations := annotationsOf(o)
	waves := fake.Text(o, "data", "waves")
	metadata, _ := o["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	_, labelled := labels[resourcesv1alpha1.LabelRolloutGroup]
	at := slices.IndexFunc(someWaves, func(some someWave) bool { return some.text == waves })
	switch pause, err := time.ParseDuration(fake.Text(o, "data", "pause")); {
	case o == nil || !labelled:
		g.names = groupFull
	case at < 0:
		g.names = "waves"
	case data["wave"] != nil:
		g.names = "key wave"
	case err != nil:
		g.names = "pause"
	case data["maxUnavailable"] == "0":
		g.names = "maxUnavailable"
	case annotations[resourcesv1alpha1.AnnotationRolloutAborted] == "all":
		g.names = resourcesv1alpha1.AnnotationRolloutAborted
	default:
		g.text.Waves, g.text.Pause = at, pause
		g.text.Timeout, _ = time.ParseDuration(fake.Text(o, "data", "timeout"))
		g.text.MaxUnavailable, _ = strconv.Atoi(fake.Text(o, "data", "maxUnavailable"))
		g.text.MaxFailed, _ = strconv.Atoi(fake.Text(o, "data", "maxFailed"))
		for name, tokens := range map[string]map[string]bool{resourcesv1alpha1.AnnotationRolloutResumed: g.resumed, resourcesv1alpha1.AnnotationRolloutAborted: g.aborted} {
			for token := range strings.SplitSeq(fake.Text(annotations, name), ",") {
				tokens[token] = true
			}
		}
	}
	if g.names != "" {
		if g.unreadable = r.group.unreadable; g.unreadable.IsZero() {
			g.unreadable = now
		}
	}
	r.group = g
}

// wavesOf puts the members into waves (ROL-3).
func (r *rollouts) wavesOf() map[int]int {
	waves := someWaves[r.group.text.Waves].waves
	var members []int
	for _, m := range r.members {
		if m.isMember {
			members = append(members, m.i)
		}
	}
	slices.SortFunc(members, func(a, b int) int { return strings.Compare(memberToken(a, ""), memberToken(b, "")) })
	waveOf := map[int]int{}
	for k, wave := range waves {
		for _, i := range members {
			if _, taken := waveOf[i]; !taken && wave.selects != nil && wave.selects(i) {
				waveOf[i] = k
			}
		}
	}
	for k, wave := range waves {
		want := (len(members)*wave.until + 99) / 100
		for _, at := range waveOf {
			if at <= k {
				want--
			}
		}
		for _, i := range members {
			if _, taken := waveOf[i]; !taken && want > 0 {
				waveOf[i] = k
				want--
			}
		}
	}
	for _, i := range members {
		if _, taken := waveOf[i]; !taken {
			waveOf[i] = len(waves)
		}
	}
	return waveOf
}

// look notes what there is now.
func (r *rollouts) look() {
	now := time.Now()
	failing := 0
	for _, m := range r.members {
		r.lookAt(m, now)
		if !m.failing.IsZero() {
			failing++
		}
	}
	switch isHalted := r.group.names == "" && failing > r.group.text.MaxFailed; {
	case !isHalted:
		r.haltedSince = time.Time{}
	case r.haltedSince.IsZero():
		r.haltedSince = now
		r.awaitHalt(now)
	}
}

func (r *rollouts) lookAt(m *memberState, now time.Time) {
	key := memberKey(m.i)
	mr := r.source.GetLocked(key)
	there := mr != nil && fake.Text(mr, "metadata", "deletionTimestamp") == ""
	isMember := there && fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationRolloutGroup) == groupName
	if there != m.there || isMember != m.isMember {
		m.there, m.isMember, m.joined = there, isMember, now
	}
	if !there {
		m.waiting, m.behind, m.failing = time.Time{}, time.Time{}, time.Time{}
		return
	}
	m.ignored = isIgnored(mr)
	if is := m.ignored || !holdOf(mr, now).IsZero(); is != m.inattentive {
		m.inattentive, m.attentive = is, now
	}
	wanted := r.revisionIn(key, mr)
	if wanted != m.wanted {
		m.wanted, m.changed = wanted, now
	}
	if _, known := m.first[wanted]; !known {
		m.first[wanted] = now
	}
	applied := fake.Text(mr, "status", "secretsDataChecksum")
	m.applied, m.record = applied, recordIn(mr)
	m.conditions = map[resourcesv1alpha1.ConditionType]object{}
	for _, name := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.RolloutHeld} {
		m.conditions[name] = conditionIn(mr, name)
	}
	m.allowed[m.applied], m.allowed[m.record.Revision] = now, now
	if !m.isMember || m.applied == "" {
		m.allowed[m.wanted] = now
	}
	note := func(since *time.Time, holds bool) {
		if !holds {
			*since = time.Time{}
		} else if since.IsZero() {
			*since = now
		}
	}
	workload := r.target.GetLocked(workloadKey(m.i))
	note(&m.broken, m.isLetGo() && isUnavailable(workload) && r.numberOf(m.wanted) == numberIn(workload))
	if m.isLetGo() && r.passes(m) {
		if _, known := m.passed[m.wanted]; !known {
			m.passed[m.wanted] = now
		}
	}
	isFailing := r.hasFailed(m)
	if isFailing {
		m.failed[m.wanted] = true
	}
	note(&m.waiting, m.isWaiting())
	note(&m.failing, isFailing)
	note(&m.behind, r.isBehind(m))
}

// revisionIn is the revision of what the Secret of a ManagedResource has, "" if it is not there.
func (r *rollouts) revisionIn(key fake.Key, mr object) string {
	for _, name := range referencesOf(mr) {
		secret := r.source.GetLocked(fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: name})
		data, _ := secret["data"].(map[string]any)
		if data != nil {
			return sum([]string{name}, []version{{data: data}})
		}
	}
	return ""
}

func (r *rollouts) numberOf(revision string) string {
	if c := r.revisions[revision]; c != nil {
		return strconv.Itoa(c.number)
	}
	return ""
}

func isUnavailable(workload object) bool {
	status, _ := workload["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	return len(conditions) > 0 && conditions[0].(map[string]any)["status"] == "False"
}

// isWaiting reports whether the content of a member waits for its turn.
func (m *memberState) isWaiting() bool {
	return m.isMember && m.wanted != "" && m.applied != "" && m.wanted != m.applied && m.wanted != m.record.Revision
}

// isLetGo reports whether the group has let go what a member wants.
func (m *memberState) isLetGo() bool {
	return m.isMember && m.wanted != "" && m.wanted == m.record.Revision && !m.record.Time.IsZero()
}

func isIgnored(mr object) bool {
	return fake.Text(mr, "metadata", "annotations", resourcesv1alpha1.AnnotationIgnore) != ""
}

// isAttentive reports whether a member has been looked after for a while.
func (r *rollouts) isAttentive(m *memberState) bool {
	return !m.inattentive && (m.attentive.IsZero() || longSince(m.attentive, r.slack()))
}

// passes reports whether a member passes the gate with what it wants: its objects have had that (T4-3).
func (r *rollouts) passes(m *memberState) bool {
	content := r.revisions[m.wanted]
	if content == nil {
		return false
	}
	for key, number := range objectsWith(content) {
		if _, had := r.had[key][number]; !had && numberIn(r.target.GetLocked(key)) != number {
			return false
		}
	}
	return m.applied == m.wanted && m.conditions[resourcesv1alpha1.ResourcesApplied]["status"] == "True" && m.conditions[resourcesv1alpha1.ResourcesHealthy]["status"] == "True"
}

// hasFailed reports whether a member surely failed with what was let go, and is not resumed (ROL-5).
func (r *rollouts) hasFailed(m *memberState) bool {
	if !m.isLetGo() || r.group.resumed[memberToken(m.i, m.wanted)] {
		return false
	}
	until := m.record.Time.Add(r.group.text.Timeout)
	for _, name := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
		c := m.conditions[name]
		if at, err := time.Parse(time.RFC3339, fake.Text(c, "lastTransitionTime")); err == nil && c["status"] == "False" && !at.Before(m.record.Time) && !at.After(until) {
			return true
		}
	}
	return !m.broken.IsZero() && m.broken.Before(until)
}

// isBehind reports whether a member surely holds up the waves after its own (ROL-4).
func (r *rollouts) isBehind(m *memberState) bool {
	if !m.isMember || m.wanted == "" || r.group.aborted[memberToken(m.i, m.wanted)] {
		return false
	}
	isResumed := r.group.resumed[memberToken(m.i, m.wanted)]
	if m.ignored {
		// Nobody reads its content, which is known by the generation only.
		isResumed = isResumed || r.group.resumed[memberToken(m.i, "unread")]
		return m.isWaiting() && !isResumed && r.group.text.MaxFailed == 0 && !r.scenario.Rollouts.InPlace && !r.group.aborted[memberToken(m.i, "unread")]
	}
	if m.isWaiting() {
		return !isResumed
	}
	_, passed := m.passed[m.wanted]
	return m.isLetGo() && !passed && !isResumed && r.group.text.MaxFailed == 0
}

func longSince(since time.Time, atLeast time.Duration) bool {
	return !since.IsZero() && time.Since(since) >= atLeast
}

// checkRecord is about a content that an instance lets go: its record is written before it is (ROL-9).
func (r *rollouts) checkRecord(i int, c fake.Change) {
	m, was, is := r.members[i], recordIn(c.Before), recordIn(c.After)
	slack := r.slack()
	if is.Revision == was.Revision || m.applied == "" || !m.isMember || !longSince(m.joined, slack) || is.Revision == m.applied {
		return
	}
	if is.Time.IsZero() {
		r.violateLocked(keepsTurns, "%s let %s go for r%d, and nobody decided about it", c.By, r.named(is.Revision), i)
		return
	}
	g := r.group
	if longSince(g.unreadable, slack) {
		r.violateLocked(keepsTurns, "%s let %s go for r%d, and there is no group since %v (ROL-8)", c.By, r.named(is.Revision), i, g.unreadable.Sub(r.begin))
	}
	if g.names != "" || !longSince(g.since, slack) || slices.ContainsFunc(r.members, func(m *memberState) bool { return !longSince(m.joined, slack) }) {
		return // Instances may go by other waves still.
	}
	if g.aborted[memberToken(i, is.Revision)] {
		r.violateLocked(keepsHalts, "%s let %s go for r%d, which was aborted (ROL-6)", c.By, r.named(is.Revision), i)
	}
	r.checkHalted(i, c.By, is)
	r.checkLimit(i, c.By, is)
	waves := r.wavesOf()
	for _, other := range r.members {
		if !other.isMember || waves[other.i] >= waves[i] {
			continue
		}
		if longSince(other.behind, slack) {
			r.violateLocked(keepsTurns, "%s let %s go for r%d of wave %d, and r%d of wave %d is not through since %v (ROL-4)", c.By, r.named(is.Revision), i, waves[i]+1, other.i, waves[other.i]+1, other.behind.Sub(r.begin))
		}
		// Times in the cluster have seconds.
		const seconds = 2 * time.Second
		if passed, has := other.passed[other.wanted]; has && other.isLetGo() && time.Since(passed)+seconds < g.text.Pause && passed.Before(other.record.Time.Add(g.text.Timeout)) {
			r.violateLocked(keepsTurns, "%s let %s go for r%d, and r%d of an earlier wave passed only at %v (ROL-4)", c.By, r.named(is.Revision), i, other.i, passed.Sub(r.begin))
		}
	}
	// Content that changes meanwhile waits twice the pause at most.
	if first, known := m.first[is.Revision]; !longSince(m.waiting, 2*g.text.Pause-2*time.Second) && waves[i] > 0 && known && time.Since(first)+2*time.Second < g.text.Pause {
		r.violateLocked(keepsTurns, "%s let %s go for r%d of wave %d, which it has only since %v (ROL-4)", c.By, r.named(is.Revision), i, waves[i]+1, first.Sub(r.begin))
	}
}

func (r *rollouts) named(revision string) string {
	return fmt.Sprintf("content %s (%s)", r.numberOf(revision), revision)
}

// checkHalted is about a content that is let go after more members failed than may (ROL-5).
func (r *rollouts) checkHalted(i int, by string, is recordText) {
	var failed []string
	for _, other := range r.members {
		if other.i != i && longSince(other.failing, r.slack()) {
			failed = append(failed, fmt.Sprintf("r%d since %v", other.i, other.failing.Sub(r.begin)))
		}
	}
	if len(failed) > r.group.text.MaxFailed {
		r.violateLocked(keepsHalts, "%s let %s go for r%d, and %d may fail: %v failed (ROL-5)", by, r.named(is.Revision), i, r.group.text.MaxFailed, failed)
	}
}

// checkLimit is about how many members are on their way at once (ROL-3). A member is surely on its way if it has neither passed nor failed since it was let go.
func (r *rollouts) checkLimit(i int, by string, is recordText) {
	limit := r.group.text.MaxUnavailable
	if limit == 0 || len(r.superseded) > 0 {
		return // Whoever has just lost the lease does not know what another one lets go.
	}
	var onTheirWay []string
	for _, other := range r.members {
		_, passed := other.passed[other.wanted]
		if other.i != i && other.isLetGo() && !passed && !other.failed[other.wanted] && other.wanted != other.applied && time.Since(other.record.Time) < r.group.text.Timeout-r.slack() &&
			longSince(other.changed, r.slack()) {
			onTheirWay = append(onTheirWay, fmt.Sprintf("r%d since %v", other.i, other.record.Time.Sub(r.begin)))
		}
	}
	if len(onTheirWay) >= limit {
		r.violateLocked(keepsLimit, "%s let %s go for r%d, and %v are on their way, of %d that may be (ROL-3)", by, r.named(is.Revision), i, onTheirWay, limit)
	}
}

// checkApplied is about a status that says that a content was applied: each object has had it.
func (r *rollouts) checkApplied(i int, c fake.Change) {
	checksum := fake.Text(c.After, "status", "secretsDataChecksum")
	if checksum == fake.Text(c.Before, "status", "secretsDataChecksum") || checksum == "" || condition(c.After, string(resourcesv1alpha1.ResourcesApplied)) != "True" {
		return
	}
	content := r.revisions[checksum]
	if content == nil || content.does == unserved {
		r.violateLocked(doneAsTold, "%s reported that r%d has the checksum %.16s applied, which cannot be", c.By, i, checksum)
		return
	}
	if !r.isAttentive(r.members[i]) {
		return // Its objects are left alone.
	}
	for key, number := range objectsWith(content) {
		if _, had := r.had[key][number]; !had && numberIn(r.target.GetLocked(key)) != number {
			r.violateLocked(doneAsTold, "%s reported that content %d of r%d is applied, and %s never had it", c.By, content.number, i, key)
		}
	}
}

// targetChanged observes the target: each write of an instance is about a content that the member was let go with, or had before (ROL-7).
func (r *rollouts) targetChanged(c fake.Change) {
	r.poke()
	i, is := memberObject(c.Key)
	if !is || i >= len(r.members) {
		return
	}
	m, before, after := r.members[i], numberIn(c.Before), numberIn(c.After)
	if r.had[c.Key] == nil {
		r.had[c.Key] = map[string]time.Time{}
	}
	r.had[c.Key][before], r.had[c.Key][after] = time.Now(), time.Now()
	if before != after {
		r.traceLocked("-- %s %ss %s: from %q to %q", c.By, c.Verb, c.Key, before, after)
	}
	r.look()
	if !isInstance(c.By) {
		m.touched[c.Key] = time.Now()
		return
	}
	if before == after && !c.Graceful || !m.there || !longSince(m.joined, r.slack()) {
		return
	}
	if c.Graceful {
		after = ""
	}
	for revision, at := range m.allowed {
		if content := r.revisions[revision]; content != nil && time.Since(at) <= r.slack() && objectsWith(content)[c.Key] == after {
			return
		}
	}
	r.violateLocked(keepsTurns, "%s %ss %s, from %q to %q: applied is %s, let go %s, wanted %s", c.By, c.Verb, c.Key, before, after, r.named(m.applied), r.named(m.record.Revision), r.named(m.wanted))
}

// checkOutsider is about the ManagedResource that is in no group: nothing reports groups on it, and it does not wait (ROL-1).
func (r *rollouts) checkOutsider(c fake.Change) {
	if isInstance(c.By) {
		if conditionIn(c.After, resourcesv1alpha1.RolloutHeld) != nil || fake.Text(c.After, "metadata", "annotations", resourcesv1alpha1.AnnotationRolloutApplied) != "" {
			r.violateLocked(sparesOthers, "%s wrote on %s, which is in no group, what members have", c.By, c.Key)
		}
		return
	}
	r.rebooting.Go(func() {
		time.Sleep(r.slackNow())
		r.lock.Lock()
		defer r.lock.Unlock()
		m := r.members[r.outsider()]
		if content := r.revisions[m.wanted]; m.there && r.isAttentive(m) && longSince(m.changed, r.slack()) && m.applied != m.wanted && content != nil && content.does != unserved {
			r.violateLocked(sparesOthers, "%s wants %s since %v, and has %s", c.Key, r.named(m.wanted), m.changed.Sub(r.begin), r.named(m.applied))
		}
	})
}

func (r *rollouts) slackNow() time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.slack()
}

// awaitHalt looks once a halt must have been told (ROL-5).
func (r *rollouts) awaitHalt(since time.Time) {
	if r.isDisturbed() {
		return
	}
	slack := r.slack()
	r.rebooting.Go(func() {
		time.Sleep(slack)
		r.lock.Lock()
		defer r.lock.Unlock()
		r.look()
		if !r.haltedSince.Equal(since) || !longSince(r.group.since, slack) {
			return
		}
		for _, m := range r.members {
			if !r.isAttentive(m) || !longSince(m.waiting, slack) || !longSince(m.changed, slack) || !longSince(m.joined, slack) || r.group.aborted[memberToken(m.i, m.wanted)] {
				continue
			}
			if is := m.reason(); is != resourcesv1alpha1.ReasonRolloutHalted {
				r.violateLocked(tellsRollouts, "r%d says %q, and the group is halted since %v (ROL-5)", m.i, is, since.Sub(r.begin))
			}
		}
	})
}

func (m *memberState) reason() string {
	return fake.Text(m.conditions[resourcesv1alpha1.RolloutHeld], "reason")
}

// awaitRepair looks at an object that somebody changed, once it must have been repaired: also while newer content waits (ROL-7).
func (r *rollouts) awaitRepair(i int, key fake.Key) {
	if r.isDisturbed() {
		return
	}
	begun := time.Now()
	within := r.slackNow() + slowestRepair + 5*time.Second
	r.rebooting.Go(func() {
		time.Sleep(within)
		r.lock.Lock()
		defer r.lock.Unlock()
		m := r.members[i]
		if !m.there || !r.isAttentive(m) || m.attentive.After(begun) || m.joined.After(begun) || m.changed.After(begun) || m.touched[key].After(begun) || m.record.Time.After(begun.Add(-time.Second)) {
			return
		}
		content := r.contentKept(m)
		if content == nil || content.does == unserved {
			return
		}
		if is, want := numberIn(r.target.GetLocked(key)), objectsWith(content)[key]; is != want && (key != extraKey(i) || want != "") {
			r.violateLocked(keepsFormer, "%s is %q since %v, and r%d keeps %q", key, is, begun.Sub(r.begin), i, want)
		}
	})
}

// contentKept is the content that the objects of a member are to have, nil if nobody can know that.
func (r *rollouts) contentKept(m *memberState) *memberContent {
	switch {
	case !m.isWaiting():
		return r.revisions[m.wanted]
	case m.record.Revision != m.applied || len(m.record.Secrets) != 1:
		return nil // Another content was let go meanwhile, and was not applied to the end.
	}
	key := memberKey(m.i)
	secret := r.source.GetLocked(fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: m.record.Secrets[0]})
	data, _ := secret["data"].(map[string]any)
	if data == nil || sum([]string{""}, []version{{data: data}}) != m.applied {
		return nil
	}
	return r.revisions[m.applied]
}

// checkCollected is about Secrets that nobody refers to: none of them is what a member keeps (ROL-7).
func (r *rollouts) checkCollected(unused []fake.Key) {
	r.look()
	if r.isDisturbed() {
		return
	}
	for _, m := range r.members {
		if content := r.contentKept(m); content != nil && m.isWaiting() && r.isAttentive(m) && longSince(m.waiting, r.slack()) && longSince(m.joined, r.slack()) && longSince(m.changed, r.slack()) {
			key := memberKey(m.i)
			if slices.Contains(unused, fake.Key{GroupResource: secretResource, Namespace: key.Namespace, Name: m.record.Secrets[0]}) {
				r.violateLocked(keepsFormer, "nothing refers to Secret %s of r%d, whose content waits since %v", m.record.Secrets[0], m.i, m.waiting.Sub(r.begin))
			}
		}
	}
}

// checkSettled compares the world at rest with what is wanted and with what is held back.
func (r *rollouts) checkSettled() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.look()
	for _, m := range r.members {
		mr := r.source.GetLocked(memberKey(m.i))
		switch {
		case mr != nil && !m.there:
			r.violateLocked(letsGo, "r%d is being deleted and has finalizers %v", m.i, fake.Meta(mr)["finalizers"])
		case mr == nil:
			r.checkGone(m)
		case m.wanted == "":
			r.violateLocked(keepsFormer, "r%d has no Secret", m.i)
		case m.isWaiting():
			r.checkHeld(m)
			r.checkObjects(m, mr)
		default:
			r.checkThrough(m, mr)
			r.checkObjects(m, mr)
		}
	}
}

func (r *rollouts) checkGone(m *memberState) {
	for _, key := range []fake.Key{plainKey(m.i), extraKey(m.i), workloadKey(m.i)} {
		if o := r.target.GetLocked(key); isOurs(origin(o)) {
			r.violateLocked(letsGo, "%s is there, and r%d is gone", key, m.i)
		}
	}
}

// checkHeld is about a member whose content is held back in the end: there is a reason for it, and it is told.
func (r *rollouts) checkHeld(m *memberState) {
	g, held := r.group, m.conditions[resourcesv1alpha1.RolloutHeld]
	var failed, maybe []string
	for _, other := range r.members {
		name := memberKey(other.i).Namespace + "/" + memberKey(other.i).Name
		if r.hasFailed(other) {
			failed = append(failed, name)
		}
		if other.isLetGo() && !r.passes(other) && !g.resumed[memberToken(other.i, other.wanted)] {
			maybe = append(maybe, name)
		}
	}
	slices.Sort(failed)
	want, names := resourcesv1alpha1.ReasonRolloutHalted, failed[:min(len(failed), 5)]
	switch {
	case g.names != "":
		want, names = resourcesv1alpha1.ReasonRolloutGroupInvalid, []string{groupName, g.names}
	case g.aborted[memberToken(m.i, m.wanted)]:
		want, names = resourcesv1alpha1.ReasonRolloutAborted, nil
	case len(maybe) <= g.text.MaxFailed:
		r.violateLocked(endsRollouts, "r%d waits with %s, and nothing halts the group: %s", m.i, r.named(m.wanted), marshal(held))
		return
	}
	message := fake.Text(held, "message")
	if held["status"] != "True" || m.reason() != want || !strings.HasPrefix(message, "Revision "+m.wanted) {
		r.violateLocked(tellsRollouts, "r%d waits with %s, and says %s; want %s", m.i, r.named(m.wanted), marshal(held), want)
	}
	for _, name := range names {
		if !strings.Contains(message, name) {
			r.violateLocked(tellsRollouts, "r%d does not name %s: %s", m.i, name, message)
		}
	}
}

// checkThrough is about a member that nothing is held back of.
func (r *rollouts) checkThrough(m *memberState, mr object) {
	content, held := r.revisions[m.wanted], m.conditions[resourcesv1alpha1.RolloutHeld]
	if held["status"] == "True" {
		r.violateLocked(tellsRollouts, "r%d says %s, and nothing of it waits", m.i, marshal(held))
	}
	applied, healthy := condition(mr, string(resourcesv1alpha1.ResourcesApplied)), condition(mr, string(resourcesv1alpha1.ResourcesHealthy))
	if content.does == unserved {
		if applied != "False" {
			r.violateLocked(conditionTrue, "r%d cannot be applied as a whole, and ResourcesApplied is %q", m.i, applied)
		}
		return
	}
	if m.applied != m.wanted || applied != "True" || fake.Text(mr, "status", "observedGeneration") != fake.Text(mr, "metadata", "generation") {
		r.violateLocked(becomesWanted, "r%d wants %s, and says %s", m.i, r.named(m.wanted), r.summaryOfMember(mr))
	}
	if isBroken := isUnavailable(r.target.GetLocked(workloadKey(m.i))); isBroken != (healthy != "True") {
		r.violateLocked(conditionTrue, "ResourcesHealthy of r%d is %s, and its Deployment is not available: %t", m.i, healthy, isBroken)
	}
}

// checkObjects is about the objects of a member and its inventory.
func (r *rollouts) checkObjects(m *memberState, mr object) {
	var entries []string
	for _, entry := range entriesOf(mr) {
		entries = append(entries, entry["name"].(string))
	}
	content := r.contentKept(m)
	for _, key := range []fake.Key{plainKey(m.i), workloadKey(m.i), extraKey(m.i)} {
		o := r.target.GetLocked(key)
		if isOurs(origin(o)) && !slices.Contains(entries, key.Name) {
			r.violateLocked(keepsEntry, "%s is ours, and the inventory of r%d has %v", key, m.i, entries)
		}
		if content == nil || content.does == unserved {
			continue
		}
		want := objectsWith(content)[key]
		if is := numberIn(o); is != want {
			r.violateLocked(becomesWanted, "%s is %q, and r%d is to have %q", key, is, m.i, want)
		}
	}
}

// anyWaits reports whether the content of any member waits.
func (r *rollouts) anyWaits() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.look()
	return slices.ContainsFunc(r.members, (*memberState).isWaiting)
}

// checkResumed is about a roll-out whose failures were all resumed.
func (r *rollouts) checkResumed() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.look()
	for _, m := range r.members {
		if m.isWaiting() {
			r.violateLocked(endsRollouts, "r%d waits with %s, and all failures were resumed: %s", m.i, r.named(m.wanted), marshal(m.conditions[resourcesv1alpha1.RolloutHeld]))
		}
	}
}

// checkMended is about a roll-out of content that is good for all.
func (r *rollouts) checkMended() {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, m := range r.members {
		if m.there && (m.applied != m.wanted || r.numberOf(m.wanted) != strconv.Itoa(r.number)) {
			r.violateLocked(endsRollouts, "r%d has %s in the end, and wants %s", m.i, r.named(m.applied), r.named(m.wanted))
		}
	}
}

// checkIdle is about requests at rest. Only what fails is tried again.
func (r *rollouts) checkIdle() {
	r.mu.Lock()
	asks := r.asks
	r.asks = nil
	r.mu.Unlock()
	r.lock.Lock()
	defer r.lock.Unlock()
	failing := map[string]bool{}
	for _, m := range r.members {
		if m.there && (m.conditions[resourcesv1alpha1.ResourcesApplied]["status"] != "True" || m.conditions[resourcesv1alpha1.ResourcesHealthy]["status"] != "True") {
			for _, letter := range []string{"r", "c", "d", "x", "w"} {
				failing[letter+strconv.Itoa(m.i)] = true
			}
		}
	}
	sent := map[ask]int{}
	for about, n := range asks {
		name, _, _ := strings.Cut(about.key.Name, "-")
		isAboutKinds := about.key.Resource == "" || about.key.GroupResource == crdResource
		if failing[name] || len(failing) > 0 && (isAboutKinds || about.key.GroupResource == eventResource) {
			continue
		}
		sent[about] = n
	}
	if len(sent) > 0 {
		r.violateLocked(comesToRest, "requests in %v, while %d fail: %v", idle, len(failing)/5, sent)
	}
}
