// Package expect compares results with what a test wants. The test goes on after a difference; package must ends it.
//
// The last arguments are a format and its values, which say what was compared; the name of the case need not be repeated:
//
//	expect.Equal(t, len(requests), 2, "MRB-1: requests after %s", pause)
package expect

import (
	"fmt"

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

func prefix(compared []any) string {
	if len(compared) == 0 {
		return ""
	}
	return fmt.Sprintf(compared[0].(string), compared[1:]...) + ": "
}
