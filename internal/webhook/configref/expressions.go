package configref

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"k8s.io/apiserver/pkg/cel"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
)

// An API server accepts a lot from its own file: 64 issuers, 64 conditions of a webhook, 100,000 characters of an
// expression. Compiling one expression of 16 KiB can take seconds and a gigabyte, and cannot be interrupted. Real
// expressions have some hundred bytes. With these limits, one expression takes half a second at most, and all
// together take seconds; the context is checked between any two.
const (
	// maxExpressions limits the expressions of a configuration: eight for each of 64 issuers.
	maxExpressions = 512
	// maxExpressionBytes limits one expression, maxAllBytes all together.
	maxExpressionBytes = 4 << 10
	maxAllBytes        = 64 << 10
	// maxNested limits the open brackets in one expression: the cost of nested macros grows with the cube of their
	// number.
	maxNested = 40
	// maxRepeated limits the total size of regular expressions after repetitions such as {1,63} are expanded: the
	// product of the counts and the size of the expression. A repeated character takes up to 500 bytes.
	maxRepeated = 256 << 10
	// fewBytes is the size up to which expressions are so cheap that they do not wait for others.
	fewBytes = 4 << 10
	// maxFailed limits the invalid expressions that are compiled: the error of one may be a hundred times as long.
	maxFailed = shownFaults
)

// Expressions compiles the expressions of configurations, of one large configuration at a time.
type Expressions struct{ turn chan struct{} }

// NewExpressions returns an idle compiler.
func NewExpressions() *Expressions { return &Expressions{make(chan struct{}, 1)} }

// Compilation compiles the expressions of one configuration.
type Compilation struct {
	ctx    context.Context
	failed int
}

// Check calls judge to validate a configuration with these expressions. It refuses expressions that are too expensive
// before any is compiled, and returns 503 if the context ends before all are compiled.
func (e *Expressions) Check(ctx context.Context, purpose string, all []string, judge func(*Compilation) error) error {
	few, err := bounded(all)
	if err != nil {
		return admission.Refuse(http.StatusUnprocessableEntity, "provided invalid %s: %s", purpose, err)
	}
	late := admission.Refuse(http.StatusServiceUnavailable, "the expressions of the %s were not compiled in time; try again", purpose)
	if !few {
		select {
		case e.turn <- struct{}{}:
			defer func() { <-e.turn }()
		case <-ctx.Done():
			return late
		}
	}
	if err = judge(&Compilation{ctx: ctx}); ctx.Err() != nil {
		return late
	}
	return err
}

// Compile compiles an expression, unless the context is done or too many expressions have failed.
func Compile[R any](c *Compilation, compile func() (R, error)) (result R, err error) {
	switch {
	case c.ctx.Err() != nil:
		return result, &cel.Error{Type: cel.ErrorTypeInternal, Detail: "not compiled in time"}
	case c.failed >= maxFailed:
		return result, &cel.Error{Type: cel.ErrorTypeInvalid, Detail: "not compiled, as others are wrong"}
	}
	result, err = compile()
	if err != nil {
		c.failed++
	}
	if wrong := (*cel.Error)(nil); errors.As(err, &wrong) {
		err = &cel.Error{Type: wrong.Type, Detail: shortened(wrong.Detail)}
	}
	return result, err
}

// bounded returns an error if the expressions exceed the limits; few means that they are so cheap that they need not
// wait.
func bounded(all []string) (few bool, err error) {
	size, repeated := 0, 0
	for _, expression := range all {
		if len(expression) > maxExpressionBytes {
			return false, fmt.Errorf("an expression has more than %d bytes", maxExpressionBytes)
		}
		if nested(expression) > maxNested {
			return false, fmt.Errorf("an expression has more than %d brackets in each other", maxNested)
		}
		size += len(expression)
		repeated += repetitions(expression) * len(expression)
	}
	switch {
	case len(all) > maxExpressions:
		return false, fmt.Errorf("there are more than %d expressions", maxExpressions)
	case size > maxAllBytes:
		return false, fmt.Errorf("all expressions together have more than %d KiB", maxAllBytes>>10)
	case repeated > maxRepeated:
		return false, fmt.Errorf("the repetitions in regular expressions are too large: numbers times the size of the expression are more than %d", maxRepeated)
	}
	return size+repeated <= fewBytes, nil
}

// nested returns the largest number of brackets that are open at once. Brackets in strings count, too.
func nested(expression string) int {
	open, most := 0, 0
	for _, c := range expression {
		switch c {
		case '(', '[', '{':
			open++
			most = max(most, open)
		case ')', ']', '}':
			open = max(0, open-1)
		}
	}
	return most
}

var (
	// escaped matches the escapes of a character by its number in CEL and in regular expressions.
	escaped = regexp.MustCompile(`\\(?:[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})`)
	// repetition matches a repetition in a regular expression. More than 1000 repetitions are a compile error.
	repetition = regexp.MustCompile(`\{([0-9]{1,4})?(?:,([0-9]{1,4})?)?\}`)
)

// repetitions returns the sum of all repetition counts, in any notation.
func repetitions(expression string) (all int) {
	plain := escaped.ReplaceAllStringFunc(expression, unescaped)
	for _, match := range repetition.FindAllStringSubmatch(plain, -1) {
		least, _ := strconv.Atoi(match[1]) // A missing number is 0.
		most, _ := strconv.Atoi(match[2])
		all += max(least, most)
	}
	return all
}

func unescaped(escape string) string {
	digits, base := escape[1:], 8
	switch digits[0] {
	case 'x', 'X', 'u', 'U':
		digits, base = digits[1:], 16
	}
	number, err := strconv.ParseUint(digits, base, 32)
	if err != nil || number > 127 {
		return escape
	}
	return string(rune(number))
}
