//go:build !race

package harness

// buildFlags make the executables report data races where the tests do.
var buildFlags []string

// buildEnvironment has the C compiler that the race detector needs.
var buildEnvironment []string
