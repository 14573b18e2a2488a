// Package must ends a test at the first step that has to succeed before the test can assert anything.
//
// The last arguments are a format and its values, which describe the step, as in package expect.
package must

import "fmt"

// TB is the part of testing.TB that rapid.T has as well.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends the test if err is not nil.
func Succeed(t TB, err error, step ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(prefix(step) + err.Error())
	}
}

// Equal ends the test if got is not want.
func Equal[T comparable](t TB, got, want T, compared ...any) {
	t.Helper()
	if got != want {
		t.Fatal(prefix(compared) + fmt.Sprintf("got %+v, want %+v", got, want))
	}
}

// True ends the test if the condition does not hold; the arguments after it describe the failure.
func True(t TB, holds bool, failure ...any) {
	t.Helper()
	if !holds {
		t.Fatal(text(failure, "got false, want true"))
	}
}

// False ends the test if the condition holds; the arguments after it describe the failure.
func False(t TB, holds bool, failure ...any) {
	t.Helper()
	if holds {
		t.Fatal(text(failure, "got true, want false"))
	}
}

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
