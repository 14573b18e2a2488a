package kubectl

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/test/expect"
)

// TestWarningWriter: each warning of an API server is printed once, without escape codes.
func TestWarningWriter(t *testing.T) {
	out := &strings.Builder{}
	warnings := warningWriter(plaintext.NewWriter(out))
	for _, text := range []string{"a\x1b[2J", "b", "b", ""} {
		warnings.HandleWarningHeader(299, "-", text)
	}
	warnings.HandleWarningHeader(199, "-", "c")
	expect.Equal(t, out.String(), "Warning: a\\u001b[2J\nWarning: b\n", "CCH-61")
}
