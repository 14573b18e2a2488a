package kubectl

import (
	"strings"
	"testing"
)

// TestWarningPrinter: each warning of an API server is printed once, without escape codes.
func TestWarningPrinter(t *testing.T) {
	out := &strings.Builder{}
	p := &warningPrinter{out: out}
	for _, text := range []string{"a\x1b[2J", "b", "b", ""} {
		p.HandleWarningHeader(299, "-", text)
	}
	p.HandleWarningHeader(199, "-", "c")
	if got, want := out.String(), "Warning: a?[2J\nWarning: b\n"; got != want {
		t.Errorf("CCH-61: got %q, want %q", got, want)
	}
}
