//go:build repeatable

package simulation

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

// repeatable is true if one seed is exactly one run, whenever it is run.
const repeatable = true

func init() {
	if runtime.GOMAXPROCS(0) != 1 {
		panic("runs are repeatable on one processor only: GOMAXPROCS=1")
	}
}

// seedBubbles says what chance means in the bubbles that begin from now on; the runtime that this is built with has it.
//
//go:linkname seedBubbles runtime.seedBubbles
func seedBubbles(seed uint64)
