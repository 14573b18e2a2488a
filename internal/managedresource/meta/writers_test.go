package meta

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// owned are managed fields, as pairs of a manager and a set of fields.
func owned(pairs ...string) (fields []metav1.ManagedFieldsEntry) {
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, metav1.ManagedFieldsEntry{Manager: pairs[i], Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(pairs[i+1])})
	}
	return fields
}

// MRB-41: who wrote in between, by the managed fields at two moments.
func TestChangedHands(t *testing.T) {
	const key, other, both = `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:b":{}}}`, `{"f:data":{".":{},"f:a":{},"f:b":{}}}`
	for name, c := range map[string]struct {
		before, after []metav1.ManagedFieldsEntry
		want          string
	}{
		"MRB-41/the same manager":                 {owned("x", key), owned("x", key), ""},
		"MRB-41/other fields of the same manager": {owned("x", key), owned("x", other), ""},
		"MRB-41/another manager":                  {owned("x", key), owned("y", key), `Secret s is overwritten alternately by "x" and "y"`},
		"MRB-41/a field changes hands":            {owned("x", both), owned("x", other, "y", key), `Secret s is overwritten alternately by "x" and "y"`},
		"MRB-41/who created it is no writer":      {owned("creator", both, "x", key), owned("creator", both, "x", other), ""},
		"MRB-41/metadata is no content":           {owned("x", key), owned("x", key, "y", `{"f:metadata":{"f:labels":{"f:l":{}}}}`), ""},
		"MRB-41/nor is a status":                  {owned("x", key), owned("x", key, "y", `{"f:status":{"f:conditions":{}}}`), ""},
		"MRB-41/two entries of one manager": {
			owned("x", key, "x", other), append(owned("x", other), owned("x", key)...), ""},
		"MRB-41/a specification":           {owned("x", `{"f:spec":{"f:secretRefs":{}}}`), owned("y", `{"f:spec":{"f:secretRefs":{}}}`), `Secret s is overwritten alternately by "x" and "y"`},
		"MRB-41/nobody is known":           {nil, owned("x", key), ""},
		"MRB-41/fields that are no JSON":   {owned("x", "{"), owned("y", "{"), ""},
		"MRB-41/five managers, four named": {owned("a", key, "b", key), owned("c", key, "d", key, "e", key), `Secret s is overwritten alternately by "a" and "b" and "c" and "d" and 1 more`},
	} {
		t.Run(name, func(t *testing.T) {
			secret := SourceObject{KindSecret, "s"}
			got := ""
			for _, fight := range ChangedHands(WritersOf(secret, c.before), WritersOf(secret, c.after)) {
				got += fight.String()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := ChangedHands(WritersOf(SourceObject{KindSecret, "s"}, owned("x", key)), WritersOf(SourceObject{KindSecret, "t"}, owned("y", key))); got != nil {
		t.Errorf("MRB-41: two objects with a writer each: %v", got)
	}
}

// MRB-41: a fight names the managers, and nothing of what they write.
func TestSourceFightNamesNoField(t *testing.T) {
	secret := SourceObject{KindSecret, "s"}
	before, after := owned("x", `{"f:data":{"f:password":{}}}`), owned("y", `{"f:data":{"f:password":{}}}`)
	if text := ChangedHands(WritersOf(secret, before), WritersOf(secret, after))[0].String(); strings.Contains(text, "password") {
		t.Errorf("MRB-41: %s", text)
	}
}

func TestContentDigest(t *testing.T) {
	a, b := &resourcesv1alpha1.ManagedResourceSpec{}, &resourcesv1alpha1.ManagedResourceSpec{InjectLabels: map[string]string{"a": "b"}}
	if ContentDigest(a, "1") == ContentDigest(a, "2") || ContentDigest(a, "1") == ContentDigest(b, "1") {
		t.Error("different contents have one digest")
	}
	if ContentDigest(b, "1") != ContentDigest(b.DeepCopy(), "1") {
		t.Error("one content has two digests")
	}
}
