// repeatable builds the simulation so that one seed is exactly one run. Choices that a simulated run would otherwise leave to chance are left to
// Go's runtime: which of several ready cases a select takes, which of several timers of the same moment fires first, the order of
// maps, math/rand, and that a goroutine which takes long in real time is interrupted. In a copy of five files of the runtime, which
// only this one executable is built with, these follow from a seed for goroutines of a bubble. It must be run in the root of the module.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// replacement is a place of the runtime that there must be exactly once.
type replacement struct{ old, new string }

var runtimeFiles = map[string][]replacement{
	"rand.go": {
		// The random data of a process decide about hashes and everything that follows.
		{"\tseed := &globalRand.seed\n", "\tseed := &globalRand.seed\n\tstartupRand = nil\n"},
		{"readRandom(seed[:]) != len(seed) || allZero(seed[:])", "seed[0] = 1; allZero(seed[:])"},
		{"func rand() uint64 {\n", "func rand() uint64 {\n\tif getg().bubble != nil {\n\t\treturn bubbleNext(0)\n\t}\n"},
		{"func maps_rand() uint64 {\n", "func maps_rand() uint64 {\n\tif getg().bubble != nil {\n\t\treturn bubbleNext(1)\n\t}\n"},
		{"// mrandinit initializes", `// bubbleStates are for math/rand, maps, selects and timers, each for itself.
var bubbleStates [4]uint64

// bubbleSelects counts selects.
var bubbleSelects uint64

// seedBubbles begins anew what chance means in bubbles.
//
//go:linkname seedBubbles
func seedBubbles(seed uint64) {
	bubbleSelects = 0
	for i := range bubbleStates {
		bubbleStates[i] = seed
	}
}

//go:nosplit
func bubbleNext(i int) uint64 {
	bubbleStates[i] += 0xa0761d6478bd642f
	hi, lo := math.Mul64(bubbleStates[i], bubbleStates[i]^0xe7037ed1a0b428db)
	return hi ^ lo
}

func bubbleRand(i int) uint32 {
	if getg().bubble == nil {
		return cheaprand()
	}
	return uint32(bubbleNext(i))
}

// mrandinit initializes`},
	},
	// A library that asks a channel again and again until somebody else has done something lets that one go on in time.
	"select.go": {
		{"cheaprandn(uint32(norder + 1))", "uint32((uint64(bubbleRand(2)) * uint64(norder+1)) >> 32)"},
		{"\tpollorder = pollorder[:norder]\n", "\tpollorder = pollorder[:norder]\n\tif getg().bubble != nil {\n\t\tif bubbleSelects++; bubbleSelects%10007 == 0 {\n\t\t\tGosched()\n\t\t}\n\t}\n"},
	},
	"time.go": {{"t.rand = cheaprand()", "t.rand = bubbleRand(3)"}},
	// Nobody is interrupted who does not take very long, and no mutex changes its ways because somebody has waited for long in real time.
	"proc.go": {{"const forcePreemptNS = 10 * 1000 * 1000", "const forcePreemptNS = 1000 * 1000 * 1000"}},
	"sema.go": {{"func internal_sync_nanotime() int64 {\n", "func internal_sync_nanotime() int64 {\n\tif getg().bubble != nil {\n\t\treturn 1\n\t}\n"}},
}

func main() {
	output := flag.String("o", "", "the executable to build; what it is built with lies beside it")
	pkg := flag.String("package", "./test/simulation", "the package whose tests to build")
	flag.Parse()
	if err := build(*pkg, *output); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func build(pkg, output string) error {
	overlay, err := writeOverlay(output + ".runtime")
	if err != nil {
		return err
	}
	// Without paths, so that what is the same in copies of the module is compiled once.
	command := exec.Command("go", "test", "-c", "-trimpath", "-o", output, "-overlay", overlay, "-tags", "repeatable", pkg)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}

// writeOverlay writes the changed files and what tells the compiler of them, and returns the path of the latter.
func writeOverlay(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("asking for GOROOT: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for name, replacements := range runtimeFiles {
		original := filepath.Join(strings.TrimSpace(string(root)), "src", "runtime", name)
		content, err := os.ReadFile(original)
		if err != nil {
			return "", err
		}
		changed, err := replace(string(content), replacements)
		if err != nil {
			return "", fmt.Errorf("%s: %w", original, err)
		}
		replaced[original] = filepath.Join(dir, name)
		if err := os.WriteFile(replaced[original], []byte(changed), 0o644); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o644)
}

func replace(content string, replacements []replacement) (string, error) {
	for _, r := range replacements {
		if n := strings.Count(content, r.old); n != 1 {
			return "", fmt.Errorf("this version of Go has %q %d times, not once", r.old, n)
		}
		content = strings.Replace(content, r.old, r.new, 1)
	}
	return content, nil
}
