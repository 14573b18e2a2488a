//go:build !repeatable

package simulation

// repeatable is true if one seed is exactly one run, whenever it is run.
const repeatable = false

func seedBubbles(uint64) {}
