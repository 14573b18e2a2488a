package meta

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
)

// A message has a bound, however much there is to tell.
func TestPropertyShortenedMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"a", "ä", "€", "\U0001f333", "\xff", "\xe2\x82"}).Draw(t, "unit")
		message := rapid.StringN(0, 20, -1).Draw(t, "start") + strings.Repeat(unit, rapid.IntRange(0, 400).Draw(t, "length"))
		limit := rapid.IntRange(64, 1024).Draw(t, "limit")
		got := Shortened(message, limit)
		valid := strings.ToValidUTF8(message, "")
		switch {
		case len(got) > limit || !utf8.ValidString(got):
			t.Fatalf("%d bytes, want %d at most and whole characters: %q", len(got), limit, got)
		case valid == message && len(message) <= limit && got != message:
			t.Fatalf("a message that fits was changed: %q", got)
		case valid == message && len(message) > limit:
			kept, note, found := strings.Cut(got, " … (")
			more, _ := strconv.Atoi(strings.TrimSuffix(note, " more bytes)"))
			expect.True(t, found && strings.HasPrefix(message, kept) && len(kept)+more == len(message),
				"%d of %d bytes kept, %d noted: %q", len(kept), len(message), more, got)
		}
	})
}

func TestMessagesOfConditionsAreBounded(t *testing.T) {
	long := Applied("False", "ApplyFailed", strings.Repeat("€", MaxMessage))
	conditions, _ := Conditions(nil).With(time.Unix(0, 0), long)
	n := len(conditions[0].Message)
	expect.True(t, n <= MaxMessage && n >= MaxMessage-8, "%d bytes", n)
	expect.False(t, expect.OK(conditions.With(time.Unix(1, 0), long)), "MRS-2: the same long message again is no change")
}
