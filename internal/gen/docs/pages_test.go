package main

import (
	"os"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestCommandLines: the reference in the repository is that of the executables and the client.
func TestCommandLines(t *testing.T) {
	number := 0
	for name, page := range pages() {
		if !strings.HasSuffix(name, "-command-line") {
			continue
		}
		number++
		content, err := os.ReadFile("../../../docs/reference/" + name + ".md")
		must.Succeed(t, err)
		expect.DeepEqual(t, page(), string(content), "make generate was forgotten")
	}
	expect.Equal(t, number, 4, "there are %d pages, want one for each executable and the client", number)
}
