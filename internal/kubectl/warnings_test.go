package kubectl

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/plaintext"
)

// TestWarningWriter: each warning of an API server is printed once, without escape codes.
func TestWarningWriter(t *testing.T) {
	out := &strings.Builder{}
	warnings := warningWriter(plaintext.NewWriter(out))
	for _, text := range []string{"a\x1b[2J", "b", "b", ""} {
		warnings.HandleWarningHeader(299, "-", text)
	}
	warnings.HandleWarningHeader(199, "-", "c")
	if got, want := out.String(), "Warning: a\\u001b[2J\nWarning: b\n"; got != want {
		t.Errorf("CCH-61: got %q, want %q", got, want)
	}
}
