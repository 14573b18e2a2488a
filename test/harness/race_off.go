//go:build !race

package harness

// buildFlags make the executables report data races where the tests do.
var buildFlags []string
