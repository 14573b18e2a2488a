package ownership

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
)

func mr(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }

// claim is that of a ManagedResource that keeps the object, creates it only once, or is ignored.
func claim(name string, words ...string) Claim {
	has := func(word string) bool { return slices.Contains(words, word) }
	return Claim{Owner: mr(name), Keeps: has("keeps"), CreateOnly: has("once"), Ignored: has("ignored")}
}

func here(name string) Origin { return Origin{ThisSource, mr(name), "n/" + name} }

var elsewhere = Origin{AnotherSource, mr("m"), "x:n/m"}

func TestIsKept_FollowsTheOrigin(t *testing.T) {
	for name, tc := range map[string]struct {
		claims []Claim
		origin Origin
		want   bool
	}{
		"MRB-16/the origin names one that keeps it":                   {[]Claim{claim("a", "keeps"), claim("b", "keeps")}, here("b"), true},
		"MRB-16/the origin names an ignored one that keeps it":        {[]Claim{claim("a", "keeps", "ignored")}, here("a"), true},
		"MRB-16/the origin names one that keeps it no more":           {[]Claim{claim("a"), claim("b", "keeps")}, here("a"), false},
		"MRB-16/the origin names one that creates it only once":       {[]Claim{claim("a", "keeps", "once")}, here("a"), false},
		"MRB-16/the origin names one without a claim":                 {[]Claim{claim("a", "keeps")}, here("b"), false},
		"MRB-16/the origin is of another source":                      {[]Claim{claim("m", "keeps")}, elsewhere, false},
		"MRB-16/an origin that cannot be parsed names no other owner": {[]Claim{claim("a", "keeps")}, Origin{Source: Unreadable, Text: "x"}, false},
		"MRB-16/an object without origin":                             {[]Claim{claim("a", "keeps")}, Origin{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, IsKept(tc.claims, tc.origin), tc.want, "kept by another one")
		})
	}
}

func TestNextOwner_PrefersThoseThatRepair(t *testing.T) {
	for name, tc := range map[string]struct {
		claims []Claim
		want   string
	}{
		"MRB-16/nobody":                                         {nil, ""},
		"MRB-16/nobody keeps it":                                {[]Claim{claim("a"), claim("b")}, ""},
		"MRB-16/the first by name":                              {[]Claim{claim("b", "keeps"), claim("a", "keeps")}, "a"},
		"MRB-16/one that repairs it":                            {[]Claim{claim("a", "keeps", "once"), claim("b", "keeps")}, "b"},
		"MRB-16/one that is not ignored":                        {[]Claim{claim("a", "keeps", "ignored"), claim("b", "keeps")}, "b"},
		"MRB-16/an ignored one before one that creates it once": {[]Claim{claim("a", "keeps", "once"), claim("b", "keeps", "ignored")}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, expect.First(NextOwner(tc.claims)).Owner.Name, tc.want, "the next owner")
		})
	}
}

func TestDecide_NeedsProof(t *testing.T) {
	other := []Claim{claim("a", "keeps")}
	for name, tc := range map[string]struct {
		left Left
		want Action
		to   string
		why  string
	}{
		"MRX-5/our origin":                                    {left: Left{Origin: here("m")}, want: Delete},
		"MRX-5/no origin, and created for it":                 {left: Left{Created: true}, want: Delete},
		"MRX-5/no origin, and no proof":                       {left: Left{}, want: Keep, why: "carries no origin"},
		"MRX-5/an unreadable origin, and created for it":      {left: Left{Origin: Origin{Source: Unreadable, Text: "?"}, Created: true}, want: Delete},
		"MRX-5/an unreadable origin":                          {left: Left{Origin: Origin{Source: Unreadable, Text: "?"}}, want: Keep, why: "its origin is ?"},
		"MRX-5/the origin of another source":                  {left: Left{Origin: elsewhere, Created: true}, want: Keep, why: "its origin is x:n/m"},
		"MRX-5/the origin of another one without a claim":     {left: Left{Origin: here("a"), Created: true}, want: Keep, why: "its origin is n/a"},
		"MRX-5/the origin of another one that has it":         {left: Left{Origin: here("a"), Claims: []Claim{claim("a")}}, want: Keep, why: "belongs to ManagedResource n/a"},
		"MRX-5/the origin of another one that keeps it":       {left: Left{Origin: here("a"), Claims: other}, want: Keep, why: "ManagedResource n/a has it"},
		"MRB-16/our origin, and another one keeps it":         {left: Left{Origin: here("m"), Claims: other}, want: HandOver, to: "a", why: "has it, too"},
		"MRB-16/created for it, and another one keeps it":     {left: Left{Created: true, Claims: other}, want: HandOver, to: "a", why: "has it, too"},
		"MRB-16/handed over though it must not be deleted":    {left: Left{Origin: here("m"), Claims: other, KeepObject: true, Collected: true}, want: HandOver, to: "a"},
		"MRB-16/our origin, and another one leaves it":        {left: Left{Origin: here("m"), Claims: []Claim{claim("a")}}, want: Delete},
		"MRX-5/it must not be deleted":                        {left: Left{Origin: here("m"), KeepObject: true}, want: Keep, why: "annotated with"},
		"MRX-5/it must not be deleted, not even foreign ones": {left: Left{DeleteForeign: true, KeepObject: true}, want: Keep, why: "annotated with"},
		"MRX-6/left to the garbage collector":                 {left: Left{Origin: here("m"), Collected: true}, want: Keep, why: "garbage collector"},
		"MRC-3/ours is deleted, though another one keeps it":  {left: Left{Origin: here("m"), DeleteForeign: true, Claims: other}, want: Delete},
		"MRC-3/foreign objects are deleted":                   {left: Left{Origin: elsewhere, DeleteForeign: true, Claims: other}, want: Delete},
	} {
		t.Run(name, func(t *testing.T) {
			tc.left.By = mr("m")
			got := Decide(tc.left)
			expect.True(t, got.Action == tc.want && got.To.Owner.Name == tc.to && strings.Contains(got.Why, tc.why),
				"got %+v, want action %d, to %q, why %q", got, tc.want, tc.to, tc.why)
		})
	}
}

// TestDecide_DeletesOnlyWhatIsProven: whatever is drawn, an object is deleted only if it is proven to be ours or foreign objects are deleted, and never while another
// ManagedResource keeps it; it is handed over only to one that keeps it; two that leave the same object never both delete it, unless both prove it.
func TestDecide_DeletesOnlyWhatIsProven(t *testing.T) {
	names := []string{"a", "b", "m"}
	rapid.Check(t, func(t *rapid.T) {
		left := Left{By: mr("m"), Created: rapid.Bool().Draw(t, "created"), KeepObject: rapid.Bool().Draw(t, "keep"), Collected: rapid.Bool().Draw(t, "collected"),
			DeleteForeign: rapid.Bool().Draw(t, "foreign")}
		left.Origin = Origin{Source: Source(rapid.IntRange(0, 3).Draw(t, "source")), Owner: mr(rapid.SampledFrom(names).Draw(t, "origin")), Text: "x"}
		for range rapid.IntRange(0, 3).Draw(t, "claims") {
			words := rapid.SampledFrom([]string{"", "once", "keeps", "keeps once", "keeps ignored", "keeps once ignored"}).Draw(t, "words")
			left.Claims = append(left.Claims, claim(rapid.SampledFrom(names[:2]).Draw(t, "owner"), strings.Fields(words)...))
		}
		got := Decide(left)
		next, kept := NextOwner(left.Claims)
		ours := left.Origin.Source == ThisSource && left.Origin.Owner == left.By || left.Created && (left.Origin.Source == NoOrigin || left.Origin.Source == Unreadable)
		switch got.Action {
		case Delete:
			if left.KeepObject || left.Collected || !left.DeleteForeign && (!ours || kept) {
				t.Fatalf("MRX-5: deleted: %+v", left)
			}
		case HandOver:
			expect.True(t, ours && kept && got.To == next, "MRB-16: handed to %s: %+v", got.To.Owner, left)
		case Keep:
			expect.True(t, got.Why != "", "MRX-5: kept without a reason: %+v", left)
		}
	})
}
