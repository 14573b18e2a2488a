// Package expect compares results with what a test wants. The test goes on after a difference; package must ends it.
//
// The last arguments are a format and its values, which say what was compared; the name of the case need not be repeated:
//
//	expect.Equal(t, len(requests), 2, "MRB-1: requests after %s", pause)
//	expect.True(t, cache.Synced(), "CCH-3: not synced after %s", pause)
package expect

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB is the part of testing.TB that rapid.T has as well.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal reports got if it is not want.
func Equal[T comparable](t TB, got, want T, compared ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%sgot %+v, want %+v", prefix(compared), got, want)
	}
}

// DeepEqual reports the differences between got and want that cmp.Diff finds.
func DeepEqual(t TB, got, want any, compared ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s-want +got:\n%s", prefix(compared), diff)
	}
}

// True reports a condition that does not hold; the arguments after it describe the failure.
func True(t TB, holds bool, failure ...any) {
	t.Helper()
	if !holds {
		t.Errorf("%s", text(failure, "got false, want true"))
	}
}

// False reports a condition that holds; the arguments after it describe the failure.
func False(t TB, holds bool, failure ...any) {
	t.Helper()
	if holds {
		t.Errorf("%s", text(failure, "got true, want false"))
	}
}

// Empty reports a string, slice or map that has a length.
func Empty(t TB, got any, compared ...any) {
	t.Helper()
	if reflect.ValueOf(got).Len() > 0 {
		t.Errorf("%sgot %+v, want none", prefix(compared), got)
	}
}

// Contains reports a text without the part.
func Contains(t TB, got, part string, compared ...any) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%sgot %s, want a part %q", prefix(compared), got, part)
	}
}

// Succeed reports an error.
func Succeed(t TB, err error, compared ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%sgot the error %v, want none", prefix(compared), err)
	}
}

// Error reports that there is no error; the arguments after it describe the failure.
func Error(t TB, err error, failure ...any) {
	t.Helper()
	if err == nil {
		t.Errorf("%s", text(failure, "got no error, want one"))
	}
}

// ErrorIs reports an error that does not wrap want.
func ErrorIs(t TB, err, want error, compared ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%sgot the error %v, want %v", prefix(compared), err, want)
	}
}

// ErrorContains reports an error whose text lacks the part, or that there is no error.
func ErrorContains(t TB, err error, part string, compared ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%sgot the error %v, want one that contains %q", prefix(compared), err, part)
	}
}

// Holds returns an error that describes the failure, unless the condition holds; for functions that are polled.
func Holds(holds bool, failure string, values ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(failure, values...)
}

// ErrorOf returns the error of a function's two results.
func ErrorOf[T any](_ T, err error) error { return err }

// First returns the first of a function's two results.
func First[A, B any](first A, _ B) A { return first }

// OK returns the second of a function's two results, which is false if there is no first one.
func OK[T any](_ T, ok bool) bool { return ok }

func prefix(compared []any) string {
	if len(compared) == 0 {
		return ""
	}
	return text(compared, "") + ": "
}

func text(failure []any, otherwise string) string {
	if len(failure) == 0 {
		return otherwise
	}
	return fmt.Sprintf(failure[0].(string), failure[1:]...)
}
