package main

import (
	"os/exec"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// The files of the present Go are still what they are taken for, and what becomes of them is accepted by the compiler.
func TestOverlay(t *testing.T) {
	overlay, err := writeOverlay(t.TempDir())
	must.Succeed(t, err)
	vet := exec.Command("go", "build", "-overlay", overlay, "runtime")
	if output, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

func TestReplaceOnce(t *testing.T) {
	for _, content := range []string{"", "aba"} {
		expect.Error(t, expect.ErrorOf(replace(content, []replacement{{"a", "b"}})), "%q has it not once", content)
	}
}
