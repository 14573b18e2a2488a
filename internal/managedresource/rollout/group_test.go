package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		data, annotations map[string]string
		want              []string
	}{
		"ROL-2/the least":                {data: map[string]string{"waves": "[{untilPercent: 10}]"}},
		"ROL-2/all keys":                 {data: map[string]string{"waves": "[{selector: a=b, namespaces: ['shoot--x--*']}, {untilPercent: 100}]", "gate": "ResourcesApplied, ResourcesProgressing", "pause": "0s", "timeout": "1h", "maxUnavailable": "10%", "maxFailed": "1"}},
		"ROL-8/no waves":                 {want: []string{"ConfigMap garden/g: key waves: is missing"}},
		"ROL-8/an unknown key":           {data: map[string]string{"waves": "[{untilPercent: 1}]", "pauze": "1s"}, want: []string{"key pauze: is not known"}},
		"ROL-8/no list":                  {data: map[string]string{"waves": "a: b"}, want: []string{"key waves: is no list of waves"}},
		"ROL-8/an empty list":            {data: map[string]string{"waves": "[]"}, want: []string{"key waves: has 0 waves"}},
		"ROL-8/an unknown field":         {data: map[string]string{"waves": "[{percent: 10}]"}, want: []string{"key waves", "percent"}},
		"ROL-8/a key twice":              {data: map[string]string{"waves": "- untilPercent: 5\n  untilPercent: 6"}, want: []string{"key waves", "untilPercent"}},
		"ROL-8/too long":                 {data: map[string]string{"waves": strings.Repeat(" ", 10) + strings.Repeat("#", longestWaves+1)}, want: []string{"key waves: is longer than"}},
		"ROL-8/neither nor":              {data: map[string]string{"waves": "[{}]"}, want: []string{"wave 1: want selector or namespaces, or else untilPercent"}},
		"ROL-8/both":                     {data: map[string]string{"waves": "[{selector: a, untilPercent: 3}]"}, want: []string{"wave 1: want selector"}},
		"ROL-8/a share of nothing":       {data: map[string]string{"waves": "[{untilPercent: 0}]"}, want: []string{"untilPercent is 0"}},
		"ROL-8/shares that do not climb": {data: map[string]string{"waves": "[{untilPercent: 10},{untilPercent: 10}]"}, want: []string{"wave 2: untilPercent must be more than the 10"}},
		"ROL-8/a selector":               {data: map[string]string{"waves": "[{selector: 'a in'}]"}, want: []string{"wave 1: selector"}},
		"ROL-8/a pattern":                {data: map[string]string{"waves": "[{namespaces: ['[']}]"}, want: []string{"wave 1: namespaces[0]"}},
		"ROL-8/all faults at once": {
			data: map[string]string{"waves": "[{untilPercent: 1}]", "gate": "Ready", "pause": "5", "timeout": "-1s", "maxUnavailable": "0", "maxFailed": "101%"},
			want: []string{`key gate: has "Ready"`, `key pause: "5" is no duration`, "key timeout: -1s is out of range", "key maxUnavailable: must be more", `key maxFailed: "101%"`},
		},
		"ROL-8/a token": {
			data: map[string]string{"waves": "[{untilPercent: 1}]"}, annotations: map[string]string{resourcesv1alpha1.AnnotationRolloutResumed: "abc"},
			want: []string{"annotation resources.gardener.cloud/rollout-resumed: \"abc\" is no token"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("garden/g", c.data, c.annotations)
			if len(c.want) == 0 && err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestTokens(t *testing.T) {
	first, second := Token(strings.Repeat("0", tokenLength)), Token(strings.Repeat("1", tokenLength))
	text, err := Tokens(sets.New(second, first))
	if err != nil || text != string(first+","+second) {
		t.Fatal(text, err)
	}
	g, err := Parse("g", map[string]string{"waves": "[{untilPercent: 1}]"}, map[string]string{resourcesv1alpha1.AnnotationRolloutAborted: text})
	if err != nil || g.Aborted.Len() != 2 {
		t.Fatalf("ROL-6: %v, %v", g, err)
	}
	many := sets.New[Token]()
	for i := range mostTokens + 1 {
		many.Insert(TokenOf(member(i).NamespacedName, "x"))
	}
	if _, err := Tokens(many); err == nil {
		t.Error("ROL-6: an annotation without end")
	}
}

func TestAssign(t *testing.T) {
	for name, c := range map[string]struct {
		waves   string
		members int
		want    []int
	}{
		"ROL-3/shares of ten":             {"[{untilPercent: 10}, {untilPercent: 50}]", 10, []int{1, 4, 5}},
		"ROL-3/a share is one at least":   {"[{untilPercent: 1}]", 3, []int{1, 2}},
		"ROL-3/all":                       {"[{untilPercent: 100}]", 3, []int{3, 0}},
		"ROL-3/labels first":              {"[{selector: odd=true}, {untilPercent: 60}]", 10, []int{5, 1, 4}},
		"ROL-3/namespaces":                {"[{namespaces: [n1, 'n2*']}]", 3, []int{2, 1}},
		"ROL-3/none of what comes later":  {"[{untilPercent: 50}, {selector: odd=true}]", 10, []int{5, 5, 0}},
		"ROL-3/nobody is in the selector": {"[{selector: a=b}, {untilPercent: 50}]", 2, []int{0, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Parse("g", map[string]string{"waves": c.waves}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var members []*Member
			for i := range c.members {
				members = append(members, member(i))
			}
			var got []int
			for _, wave := range g.Assign(members).waves {
				got = append(got, len(wave))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestRecord(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if _, found := RecordOf(mr); found {
		t.Error("ROL-9: a record of nothing")
	}
	want := NewRecord(rev(1), start, []string{"a", "b"})
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationRolloutApplied: want.String()}
	if got, found := RecordOf(mr); !found || !got.Same(want) {
		t.Errorf("ROL-9: the record is %v, want %v", got, want)
	}
	mr.Annotations[resourcesv1alpha1.AnnotationRolloutApplied] = "{"
	if _, found := RecordOf(mr); found {
		t.Error("ROL-9: a record that cannot be read")
	}
	if many := NewRecord("r", start, make([]string, mostSecrets+1)); many.Secrets != nil {
		t.Error("ROL-9: the record has no bound")
	}
}

func TestHeldMessages(t *testing.T) {
	m := member(3)
	m.Wanted, m.Applied = rev(1), rev(2)
	var bad []Bad
	for i := range 7 {
		bad = append(bad, Bad{member(i), "ResourcesHealthy is False"})
	}
	for _, standing := range []Standing{Waits, Halted, Aborted} {
		change := Held("garden/g", standing, m, 2, 3, bad)
		if RevisionIn(change.Message) != m.Wanted {
			t.Errorf("ROL-9: no revision in %q", change.Message)
		}
		if standing == Halted && (!strings.Contains(change.Message, "n4/m failed (ResourcesHealthy is False); and 2 more") || strings.Contains(change.Message, "n5/m")) {
			t.Errorf("ROL-5: %s", change.Message)
		}
	}
	if got := RevisionIn(Unguided(m, "there is no ConfigMap").Message); got != m.Wanted {
		t.Errorf("ROL-8: revision %q", got)
	}
	for _, text := range []string{"", "Revision ", "Revision 0123456789abcdef waits", "The revision"} {
		if got := RevisionIn(text); got != "" {
			t.Errorf("ROL-9: %q is a revision in %q", got, text)
		}
	}
}
