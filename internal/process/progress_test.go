package process

import (
	"strings"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/expect"
)

// TestProgress: short work says nothing, long work a line now and then, and the lines of a terminal are one.
func TestProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		terminal bool
		seconds  []int
		want     string
	}{
		"CLI-9/short work":        {false, []int{0, 1}, ""},
		"CLI-9/long work":         {false, []int{1, 2, 3, 5}, "at 2\nat 5\n"},
		"CLI-9/short, a terminal": {true, []int{1}, ""},
		"CLI-9/long, a terminal":  {true, []int{2, 4}, "at 2\x1b[K\rat 4\x1b[K\r\x1b[K"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			began := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
			now := began
			p := NewProgress(&out, func() time.Time { return now })
			p.overwrites = tc.terminal
			for _, at := range tc.seconds {
				now = began.Add(time.Duration(at) * time.Second)
				p.Report(func() string { return "at " + string(rune('0'+at)) })
			}
			p.Done()
			expect.Equal(t, out.String(), tc.want)
		})
	}
}
