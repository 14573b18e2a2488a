package configref

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/test/expect"
)

func TestBoundsOfExpressions(t *testing.T) {
	many := func(times int, expression string) (all []string) {
		for range times {
			all = append(all, expression)
		}
		return all
	}
	const uuid = `claims.a.matches('^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$')`
	for name, c := range map[string]struct {
		all  []string
		few  bool
		want string
	}{
		"none":                       {nil, true, ""},
		"usual ones":                 {many(10, uuid), false, ""},
		"one":                        {many(1, uuid), true, ""},
		"as many as may be":          {many(512, "true"), true, ""},
		"too many":                   {many(513, "true"), false, "there are more than 512 expressions"},
		"as long as may be":          {many(16, strings.Repeat("x", 4<<10)), false, ""},
		"too long":                   {many(1, strings.Repeat("x", 4<<10+1)), false, "an expression has more than 4096 bytes"},
		"too long together":          {many(17, strings.Repeat("x", 4<<10)), false, "all expressions together have more than 64 KiB"},
		"too deep":                   {many(1, strings.Repeat("[1].exists(a,", 50)), false, "an expression has more than 40 brackets in each other"},
		"a repetition":               {many(1, `a.matches('(`+strings.Repeat("a", 500)+`){1,600}')`), false, "the repetitions in regular expressions are too large"},
		"many repetitions":           {many(40, `a.matches('a{900}')`), false, "the repetitions in regular expressions are too large"},
		"a repetition in escapes":    {many(1, `a.matches('(`+strings.Repeat("a", 500)+`)\x7b\u0039\U0000003000}')`), false, "the repetitions in regular expressions are too large"},
		"a repetition in octal":      {many(1, `a.matches('(`+strings.Repeat("a", 500)+`)\173900\175')`), false, "the repetitions in regular expressions are too large"},
		"braces that repeat nothing": {many(1, `{'a': {'b': 'c'}}[a][b] == '{x}'`), true, ""},
	} {
		t.Run("AUT-3/AUZ-4, "+name, func(t *testing.T) {
			few, err := bounded(c.all)
			if few != c.few || c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
				t.Errorf("few: %v, %v; want %v, %s", few, err, c.few, c.want)
			}
		})
	}
}

// TestOneCompilationAtATime: a large configuration waits for another one within its context; a small one does not wait.
func TestOneCompilationAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewExpressions()
		large := []string{strings.Repeat("x", 4<<10), "y"}
		began, end := make(chan struct{}), make(chan struct{})
		first := make(chan error)
		go func() {
			first <- e.Check(t.Context(), "thing", large, func(*Compilation) error { close(began); <-end; return nil })
		}()
		<-began
		judged := false
		err := e.Check(t.Context(), "thing", []string{"y"}, func(*Compilation) error { judged = true; return nil })
		expect.True(t, err == nil && judged, "AUT-3/a small one waits: judged %v, %v", judged, err)
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error)
		go func() {
			second <- e.Check(ctx, "thing", large, func(*Compilation) error { t.Error("AUT-3/two at a time"); return nil })
		}()
		synctest.Wait()
		cancel()
		if refusal := (*admission.Refusal)(nil); !errors.As(<-second, &refusal) || refusal.Code != 503 {
			t.Errorf("AUT-3/one that has waited too long: got %+v", refusal)
		}
		close(end)
		expect.Succeed(t, <-first)
		expect.Succeed(t, e.Check(t.Context(), "thing", large, func(*Compilation) error { return nil }),
			"AUT-3/the turn is not given back")
	})
}

// TestCompilationEnds: nothing is compiled once the context is done, or when too many are wrong.
func TestCompilationEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	compiled := 0
	err := NewExpressions().Check(ctx, "thing", nil, func(c *Compilation) error {
		for range 10 {
			_, _ = Compile(c, func() (int, error) {
				if compiled++; compiled == 3 {
					cancel()
				}
				return 0, nil
			})
		}
		return nil
	})
	if refusal := (*admission.Refusal)(nil); compiled != 3 || !errors.As(err, &refusal) || refusal.Code != 503 {
		t.Errorf("AUT-3/%d were compiled, %v", compiled, err)
	}
	compiled = 0
	err = NewExpressions().Check(t.Context(), "thing", nil, func(c *Compilation) error {
		var faults field.ErrorList
		for range 500 {
			_, err := Compile(c, func() (int, error) {
				compiled++
				return 0, &cel.Error{Type: cel.ErrorTypeInvalid, Detail: strings.Repeat("é", 1<<20)}
			})
			faults = append(faults, field.Invalid(field.NewPath("a"), "x", err.Error()))
		}
		return Invalid("thing", faults)
	})
	if text := fmt.Sprint(err); compiled != 20 || len(text) > 32<<10 || !strings.HasPrefix(text, "provided invalid thing: [a: Invalid value: ") || !strings.HasSuffix(text, " and 480 more]") {
		t.Errorf("AUT-3/%d were compiled, %d bytes: %.100s", compiled, len(text), text)
	}
}
