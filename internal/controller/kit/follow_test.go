package kit

import (
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// COM-3: the configured namespaces are followed, or all.
func TestWatched(t *testing.T) {
	for name, tc := range map[string]struct {
		configured []string
		want       int
	}{"COM-3/none": {nil, 1}, "COM-3/some": {[]string{"a", "b"}, 2}, "COM-3/all beside some": {[]string{"a", ""}, 1}} {
		expect.Equal(t, len(Watched(tc.configured)), tc.want, "%s", name)
	}
}
