package configref

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
	"github.com/espalier-project/espalier/test/expect"
)

// CV-5: two Shoots want the same if every member of their specs means the same.
func TestSameSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		now, old  string
		want, bad bool
	}{
		"CV-5/as it is written":           {`{"spec":{"a":1}}`, `{"spec":{"a":1}}`, true, false},
		"CV-5/in another order":           {`{"spec":{"a":1,"b":2}}`, `{"spec":{"b":2,"a":1}}`, true, false},
		"CV-5/another value":              {`{"spec":{"a":1}}`, `{"spec":{"a":2}}`, false, false},
		"CV-5/a member more":              {`{"spec":{"a":1,"b":2}}`, `{"spec":{"a":1}}`, false, false},
		"CV-5/a member less":              {`{"spec":{"a":1}}`, `{"spec":{"a":1,"b":2}}`, false, false},
		"CV-5/no spec any more":           {`{}`, `{"spec":{}}`, false, false},
		"CV-5/no spec before":             {`{"spec":{}}`, `{}`, false, false},
		"CV-5/no spec in either":          {`{}`, `{"metadata":{}}`, true, false},
		"CV-5/an empty list":              {`{"spec":{"a":[]}}`, `{"spec":{}}`, true, false},
		"CV-5/a list with an element":     {`{"spec":{"a":[1]}}`, `{"spec":{}}`, false, false},
		"CV-5/quantities":                 {`{"spec":{"maxAllowed":{"cpu":"1000m"}}}`, `{"spec":{"maxAllowed":{"cpu":1}}}`, true, false},
		"CV-5/other quantities":           {`{"spec":{"maxAllowed":{"cpu":"1001m"}}}`, `{"spec":{"maxAllowed":{"cpu":1}}}`, false, false},
		"CV-5/what are no quantities":     {`{"spec":{"maxAllowed":{"cpu":true}}}`, `{"spec":{"maxAllowed":{"cpu":false}}}`, false, false},
		"CV-5/one is no quantity":         {`{"spec":{"maxAllowed":{"cpu":"x"}}}`, `{"spec":{"maxAllowed":{"cpu":"0"}}}`, false, false},
		"CV-5/the other is no quantity":   {`{"spec":{"maxAllowed":{"cpu":"0"}}}`, `{"spec":{"maxAllowed":{"cpu":"x"}}}`, false, false},
		"CV-5/versions are texts":         {`{"spec":{"version":"1.30"}}`, `{"spec":{"version":"1.3"}}`, false, false},
		"CV-5/a mapping and a list":       {`{"spec":{"a":{"b":1}}}`, `{"spec":{"a":[1]}}`, false, false},
		"CV-5/a list and a text":          {`{"spec":{"a":[1]}}`, `{"spec":{"a":"1"}}`, false, false},
		"CV-5/an empty list and a text":   {`{"spec":{"a":[]}}`, `{"spec":{"a":"x"}}`, false, false},
		"CV-5/a list in a list":           {`{"spec":{"a":[[]]}}`, `{"spec":{"a":["x"]}}`, false, false},
		"CV-5/amounts in a list":          {`{"spec":{"maxAllowed":{"cpu":"1"}}}`, `{"spec":{"maxAllowed":["1"]}}`, false, false},
		"CV-5/unreadable specs":           {`{"spec":{"a":1}} x`, `{"spec":{"a":1}}`, false, true},
		"CV-5/unreadable now":             {`{`, `{"spec":{}}`, false, true},
		"CV-5/unreadable before":          {`{"spec":{}}`, `{`, false, true},
		"CV-5/unreadable in the same way": {`{`, `{`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sameSpec([]byte(tc.now), []byte(tc.old))
			expect.True(t, got == tc.want && (err != nil) == tc.bad, "got %v, %v", got, err)
		})
	}
}

// The bounds of expressions are exact: what reaches a bound is taken, and what exceeds it is refused or waits.
func TestExactBoundsOfExpressions(t *testing.T) {
	for expression, want := range map[string]int{"": 0, "(": 1, "([{": 3, "()()": 1, ")(": 1, "))((": 2, "(()": 2, "a(b[c]d){e}": 2} {
		expect.Equal(t, nested(expression), want, "%q has %d brackets in each other", expression, want)
	}
	for escape, want := range map[string]string{
		`\x7b`: "{", `\X7B`: "{", `\u007b`: "{", `\U0000007b`: "{", `\173`: "{", `\x7f`: "\x7f", `\177`: "\x7f", `\x80`: `\x80`, `\200`: `\200`, `\UFFFFFFFF`: `\UFFFFFFFF`,
	} {
		expect.Equal(t, unescaped(escape), want, "%s stands for", escape)
	}
	for name, tc := range map[string]struct {
		expression string
		few, bad   bool
	}{
		"as many brackets as may be": {strings.Repeat("(", maxNested), true, false},
		"one more":                   {strings.Repeat("(", maxNested+1), false, true},
		"as many bytes as are few":   {strings.Repeat("a", fewBytes), true, false},

		"larger than one may": {strings.Repeat("a", maxExpressionBytes+1), false, true},
	} {
		few, err := bounded([]string{tc.expression})
		expect.True(t, few == tc.few && (err != nil) == tc.bad, "%s: got %v, %v", name, few, err)
	}
}

// A text that begins with a brace is JSON, as it is for API servers, and stays as it is written.
func TestJSONIsTakenAsItIs(t *testing.T) {
	for text, want := range map[string]string{" {\"a\" :  1}\n": " {\"a\" :  1}\n", "a:  1\n": `{"a":1}`} {
		if got, err := toJSON(text); err != nil || strings.TrimSuffix(string(got), "\n") != strings.TrimSuffix(want, "\n") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

// A configuration that cannot be decoded is refused with what is wrong with it, and not with the whole of it (CV-T5).
func TestUndecodable(t *testing.T) {
	decoder := NewDecoder(runtime.NewScheme())
	deep := strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)
	_, _, err := decoder.Decode("x", deep)
	expect.ErrorContains(t, err, boundedyaml.CheckJSON([]byte(deep)).Error(), "CV-T5: JSON that is nested deeply")
	for content, want := range map[string]string{
		"a: secret": "Object 'Kind' is missing", "kind: X\na: secret": "Object 'apiVersion' is missing", "{": "unexpected", "[": "did not find",
		"{\"kind\":\"X\",\"apiVersion\":\"g/v1\"}": "no kind", strings.Repeat("x", 4<<20): "",
	} {
		_, _, err := decoder.Decode("x", content)
		refusal := (*admission.Refusal)(nil)
		if !errors.As(err, &refusal) || refusal.Code != 422 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || len(err.Error()) > 2*shownFaultSize {
			t.Errorf("CV-T5: %.20q: got %v", content, err)
		}
	}
}

// An answer names some faults, and how many there are beside them; each is shortened (CV-T5).
func TestInvalid(t *testing.T) {
	expect.Succeed(t, Invalid("x", nil), "CV-T5: without faults")
	for n, want := range map[int]string{1: "", shownFaults: "", shownFaults + 1: " and 1 more]"} {
		faults := field.ErrorList{}
		for range n {
			faults = append(faults, field.Required(field.NewPath("a"), strings.Repeat("y", 2*shownFaultSize)))
		}
		err := Invalid("x", faults)
		refusal := (*admission.Refusal)(nil)
		if !errors.As(err, &refusal) || refusal.Code != 422 || strings.Contains(err.Error(), " more]") != (want != "") || !strings.Contains(err.Error(), want) ||
			strings.Count(err.Error(), "a: Required") != min(n, shownFaults) || len(err.Error()) > (shownFaults+1)*(shownFaultSize+100) {
			t.Errorf("CV-T5: %d faults: %d bytes: %.300s", n, len(err.Error()), err)
		}
	}
	got := shortened(strings.Repeat("x", shownFaultSize))
	expect.Equal(t, len(got), shownFaultSize, "CV-T5: a text of the size that is shown has %d bytes", len(got))
}
