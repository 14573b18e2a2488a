package kit

import "testing"

// COM-3: the configured namespaces are followed, or all.
func TestWatched(t *testing.T) {
	for name, tc := range map[string]struct {
		configured []string
		want       int
	}{"COM-3/none": {nil, 1}, "COM-3/some": {[]string{"a", "b"}, 2}, "COM-3/all beside some": {[]string{"a", ""}, 1}} {
		if got := Watched(tc.configured); len(got) != tc.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
