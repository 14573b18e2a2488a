package main

import (
	"bytes"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestScript: a part's output is kept until it is its turn.
func TestScript(t *testing.T) {
	var out bytes.Buffer
	first, second := &script{}, &script{}
	first.show(&out)
	second.heading("Second")
	first.heading("First")
	second.step("%d of the second", 1)
	first.step("%d of the first", 1)
	second.show(&out)
	second.step("%d of the second", 2)
	const want = "\n== First\n   1 of the first\n\n== Second\n   1 of the second\n   2 of the second\n"
	expect.Equal(t, out.String(), want)
}
