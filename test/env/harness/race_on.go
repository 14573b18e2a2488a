//go:build race

package harness

// buildFlags make the executables report data races where the tests do.
var buildFlags = []string{"-race"}

// buildEnvironment has the C compiler that the race detector needs.
var buildEnvironment = []string{"CGO_ENABLED=1"}
