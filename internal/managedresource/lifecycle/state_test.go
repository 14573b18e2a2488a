package lifecycle

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

var inventory = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "a"}}}

// reported is a ManagedResource with the status that a run of generation 2 leaves.
func reported() *resourcesv1alpha1.ManagedResource {
	checksum := "sum"
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Generation = 2
	mr.Status = resourcesv1alpha1.ManagedResourceStatus{ObservedGeneration: 2, SecretsDataChecksum: &checksum, Resources: inventory,
		Conditions: []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: "True", Reason: "ApplySucceeded"}}}
	return mr
}

// TestReported_RecognizesOwnStatus recognizes the status that a run wrote, and a run that waits for deletions and need not be repeated.
func TestReported_RecognizesOwnStatus(t *testing.T) {
	applied := meta.ConditionChange{Type: resourcesv1alpha1.ResourcesApplied, Status: "True", Reason: "ApplySucceeded"}
	ended := &Completed{Generation: 2, Checksum: "sum", Applied: applied, Inventory: meta.InventoryDigest(inventory)}
	noon := time.Unix(1000, 0)
	waits := &Pending{Generation: 2, Applied: applied, Inventory: ended.Inventory, Until: noon}
	other := "other"
	for name, c := range map[string]struct {
		change             func(*resourcesv1alpha1.ManagedResource)
		reported, awaiting bool
	}{
		"MR-13/as the run left it":        {change: func(*resourcesv1alpha1.ManagedResource) {}, reported: true, awaiting: true},
		"MR-13/another generation":        {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.ObservedGeneration = 1 }, awaiting: true},
		"MR-13/no checksum":               {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.SecretsDataChecksum = nil }, awaiting: true},
		"MR-13/another checksum":          {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.SecretsDataChecksum = &other }, awaiting: true},
		"MR-13/no condition":              {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions = nil }},
		"MR-13/another status":            {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions[0].Status = "False" }},
		"MR-13/another reason":            {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions[0].Reason = "x" }},
		"MR-13/an entry is gone":          {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Resources = nil }},
		"MRT-5/the specification changed": {change: func(mr *resourcesv1alpha1.ManagedResource) { mr.Generation = 3 }, reported: true},
	} {
		t.Run(name, func(t *testing.T) {
			mr := reported()
			c.change(mr)
			expect.Equal(t, ended.Reported(mr), c.reported, "the status is what the run made of it")
			expect.Equal(t, waits.IsCurrent(mr, noon.Add(-1)), c.awaiting, "the run that waits for deletions counts")
			expect.False(t, waits.IsCurrent(mr, noon), "MRT-5: the run that waits for deletions counts after its time")
		})
	}
}

// TestHasRead_SkipsDecoding: a run with known versions need not decode Secrets again.
func TestHasRead_SkipsDecoding(t *testing.T) {
	read := map[string]string{"s": "1", "t": "1"}
	for name, c := range map[string]struct {
		run  Run
		want bool
	}{
		"MRB-21/the same":               {Run{Last: &Completed{Generation: 2, Secrets: read}}, true},
		"MRB-21/another generation":     {Run{Last: &Completed{Generation: 1, Secrets: read}}, false},
		"MRB-21/another version":        {Run{Last: &Completed{Generation: 2, Secrets: map[string]string{"s": "1", "t": "2"}}}, false},
		"MRB-21/a Secret more":          {Run{Last: &Completed{Generation: 2, Secrets: map[string]string{"s": "1"}}}, false},
		"MRB-21/changes may be missed":  {Run{Last: &Completed{Generation: 2, Secrets: read}, Inbox: Inbox{SecretsMissed: true}}, false},
		"MRB-21/no run ended well ever": {Run{}, false},
	} {
		expect.Equal(t, c.run.HasRead(2, maps.Clone(read)), c.want, "%s", name)
	}
}

// TestNewer_ComparesWithTheWatch compares the versions that a run read with those of later events.
func TestNewer_ComparesWithTheWatch(t *testing.T) {
	for name, c := range map[string]struct {
		inbox Inbox
		want  bool
	}{
		"MRT-4/nothing was told":      {Inbox{}, false},
		"MRT-4/the version that read": {Inbox{Secrets: map[string]string{"s": "1"}}, false},
		"MRT-4/another version":       {Inbox{Secrets: map[string]string{"s": "2"}}, true},
		"MRT-4/another Secret":        {Inbox{Secrets: map[string]string{"t": "1"}}, true},
		"MRT-4/one of two":            {Inbox{Secrets: map[string]string{"s": "1", "t": "1"}}, true},
		"MRT-4/a deletion":            {Inbox{SecretDeleted: true}, true},
	} {
		expect.Equal(t, (State{Inbox: c.inbox}).Newer(map[string]string{"s": "1"}), c.want, "%s", name)
	}
}

// TestAtRest_NeedsNoRun lists the states in which no run is due.
func TestAtRest_NeedsNoRun(t *testing.T) {
	ended := &Completed{Generation: 1}
	for name, c := range map[string]struct {
		state State
		want  bool
	}{
		"MRT-5/a run ended well":        {State{Last: ended}, true},
		"MRT-5/of another generation":   {State{Last: &Completed{Generation: 2}}, false},
		"MRT-5/something arrived since": {State{Last: ended, Inbox: Inbox{Recheck: true}}, false},
		"MRT-5/a run took it over":      {State{Last: ended, Run: &Run{Inbox: Inbox{Periodic: true}}}, false},
		"MRT-5/a run for nothing":       {State{Last: ended, Run: &Run{}}, true},
		"MRT-5/no run ended":            {State{}, false},
	} {
		expect.Equal(t, c.state.AtRest(1), c.want, "%s", name)
	}
}

// TestPutBack_RestoresPendingEvents: events that a run took over are pending again beside later ones, and a wish for a full run begins with no object visited.
func TestPutBack_RestoresPendingEvents(t *testing.T) {
	a := map[objects.ID]struct{}{{Name: "a"}: {}}
	taken := Inbox{Full: true, Visited: a, Secrets: map[string]string{"s": "1", "t": "1"}}
	for name, c := range map[string]struct{ taken, arrived, want Inbox }{
		"MRT-4/a newer version wins": {taken: taken, arrived: Inbox{Secrets: map[string]string{"s": "2"}},
			want: Inbox{Full: true, Visited: a, Secrets: map[string]string{"s": "2", "t": "1"}}},
		"MRT-3/another wish begins anew": {taken: taken, arrived: Inbox{Full: true, Requested: true}, want: Inbox{Full: true, Requested: true, Secrets: taken.Secrets}},
		"MR-1/what the run took over":    {taken: Inbox{Recheck: true, Periodic: true, SecretsMissed: true, SecretDeleted: true}, want: Inbox{Recheck: true, Periodic: true, SecretsMissed: true, SecretDeleted: true}},
		"MR-1/what arrived":              {arrived: Inbox{Recheck: true, Periodic: true, SecretsMissed: true, SecretDeleted: true}, want: Inbox{Recheck: true, Periodic: true, SecretsMissed: true, SecretDeleted: true}},
	} {
		expect.DeepEqual(t, c.taken.merged(c.arrived), c.want, "%s", name)
	}
	expect.Equal(t, taken.Secrets["s"], "1", "MRT-4: the Inbox of a run changed")
}

// TestMeasure_BeginsAnewAfterFailure: a change is measured from its first news on, and after one that failed from the next.
func TestMeasure_BeginsAnewAfterFailure(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	c := Change{}.comes(3, at(1)).comes(2, at(2))
	expect.True(t, c.Since.Equal(at(1)) && c.Generation == 3,
		"MRT-4: a change is measured from the first news on, until the newest generation is applied: %+v", c)
	c.Failed = true
	if c = c.comes(4, at(5)); c.Since != at(5) || c.Failed || c.Generation != 4 {
		t.Errorf("MRT-4: after a failure it is measured from the next change on: %+v", c)
	}
	if c = c.comes(4, at(6)); c.Since != at(5) {
		t.Errorf("MRT-4: it is measured from the first news on: %+v", c)
	}
}

// MRT-4: an answer that is older than the known version of a Secret is not applied.
func TestRun_ReadOutdated(t *testing.T) {
	for name, c := range map[string]struct {
		reported, last string
		missed         bool
		read           string
		want           bool
	}{
		"the reported version":                  {reported: "u/5", read: "u/5"},
		"a later version":                       {reported: "u/5", read: "u/6"},
		"an older version than reported":        {reported: "u/5", read: "u/4", want: true},
		"fewer digits":                          {reported: "u/10", read: "u/9", want: true},
		"an older version than read before":     {last: "u/5", read: "u/4", want: true},
		"the version that was read before":      {last: "u/5", read: "u/5"},
		"another Secret of that name":           {reported: "u/5", last: "u/5", read: "other/4"},
		"after a deletion":                      {reported: "", last: "", read: "u/4"},
		"versions that cannot be compared":      {reported: "u/b", read: "u/a"},
		"the source may have been restored":     {reported: "u/5", last: "u/5", missed: true, read: "u/4"},
		"nothing is known, as in the first run": {read: "u/4"},
	} {
		t.Run(name, func(t *testing.T) {
			outdated := func(s State) bool {
				run := &Run{Known: map[string][]string{"s": s.KnownVersions("s")}}
				return run.ReadOutdated(map[string]string{"s": c.read})
			}
			inbox, last := Inbox{SecretsMissed: c.missed, Secrets: map[string]string{"s": c.reported}}, &Completed{Secrets: map[string]string{"s": c.last}}
			expect.Equal(t, outdated(State{Inbox: inbox, Last: last}), c.want)
			expect.Equal(t, outdated(State{Run: &Run{Inbox: inbox}, Last: last}), c.want, "during a run")
			if c.last == "" {
				expect.Equal(t, outdated(State{Inbox: inbox}), c.want, "without a successful run")
			}
		})
	}
}
