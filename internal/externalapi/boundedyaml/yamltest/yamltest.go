// Package yamltest has the requirements on decoders of untrusted YAML: hostile documents, the allowed cost of
// refusing them, and the allowed cost of any input. Only tests import it.
package yamltest

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Cost limits the bytes that a decoder allocates for any input, and Work its CPU time: under the race detector and on
// a slow machine the longest seed takes a tenth of that. A document that is refused for a limit may cost two times
// its size plus Refused.
const (
	Cost    = 64 << 20
	Work    = 10 * time.Second
	Refused = 4 << 20
)

// Hostile are documents that exceed a limit, each about size bytes.
func Hostile(size int) map[string]string {
	half := size / 2
	return map[string]string{
		"a text used many times":    "a: &a \"" + strings.Repeat("x", half) + "\"\nb: [*a" + strings.Repeat(",*a", half/3) + "]\n",
		"a key used many times":     "a: &a {\"" + strings.Repeat("x", half) + "\": b}\nb:\n" + strings.Repeat("- *a\n", half/5),
		"merged many times":         "a: &a {b: \"" + strings.Repeat("x", half) + "\"}\nb:\n" + strings.Repeat("- <<: *a\n", half/9),
		"aliases of aliases":        Nested(12),
		"merged again and again":    "a: &a {x: y}\n" + chain("<<"),
		"a mapping that has itself": "a: &a {b: *a}\n",
		"a list that has itself":    "a: &a\n- *a\n",
		"anchors in JSON":           `{"a": &a "` + strings.Repeat("x", half) + `", "b": [*a` + strings.Repeat(",*a", half/3) + "]}",
		"aliases after tags":        "a: !!str &a " + strings.Repeat("x", half) + "\nb: [*a" + strings.Repeat(",*a", half/3) + "]\n",
		"aliases and many nodes":    "a: &a b\nb: *a\nc:\n" + strings.Repeat("- {a: 1}\n", max(size, 64<<10)/9),
		"aliases and comments":      "a: &a b\nb: *a\nc:\n" + strings.Repeat("# a\n- a # b\n", max(size, 64<<10)/12),
		"aliases and a long text":   "a: &a b\nb: *a\nc: " + strings.Repeat("x", max(size, 512<<10)) + "\n",
		"aliases and blanks":        "a: &a b\nb: *a\nc: \"" + strings.Repeat("\n", max(size, 512<<10)) + "\"\n",
		"many entries":              strings.Repeat("- a\n", 60_000),
		"many entries in a line":    "a: [" + strings.Repeat("a,", 60_000) + "a]\n",
		"many mappings in a line":   "a: [" + strings.Repeat("{},", 60_000) + "a]\n",
		"many JSON values":          `{"a":[` + strings.Repeat("{},", 60_000) + "1]}",
		"many comments":             "a: b\n" + strings.Repeat("# a\n", 120_000),
		"deep brackets":             strings.Repeat("[", 100_000),
		"deep braces":               strings.Repeat("{a: ", 20_000),
		"deep JSON":                 strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
		"deep lists":                strings.Repeat("- ", 20_000) + "a",
		"a long text":               "a: " + strings.Repeat("x", 4<<20),
		"text that JSON escapes":    "a: " + strings.Repeat("<", 1<<20),
		"UTF-16":                    "\xff\xfea\x00:\x00 \x00&\x00a\x00\n\x00",
	}
}

// Nested returns a document of some levels, each of which uses the one before ten times.
func Nested(levels int) string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for n := 1; n < levels; n++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", n, n, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", n-1), 10), ","))
	}
	return text
}

// chain returns a list of mappings, each of which merges the one before five times.
func chain(merge string) string {
	text := ""
	for n := range 12 {
		before := "a"
		if n > 0 {
			before = fmt.Sprint("b", n-1)
		}
		text += fmt.Sprintf("b%d: &b%d {", n, n)
		for i := range 5 {
			text += fmt.Sprintf("c%d: {%s: *%s, d: *%s}, ", i, merge, before, before)
		}
		text += "}\n"
	}
	return text
}

// Seeds adds the small hostile documents to the seeds of a fuzz target.
func Seeds(f *testing.F, add func(content string)) {
	f.Helper()
	for _, content := range Hostile(1 << 10) {
		if len(content) <= 64<<10 {
			add(content)
		}
	}
}

// RefusesCheaply requires that a decoder refuses hostile documents within the cost of refused ones, and without their
// content in the error.
func RefusesCheaply(t *testing.T, rule string, sizes []int, decode func(content []byte) error) {
	t.Helper()
	for _, size := range sizes {
		for name, content := range Hostile(size) {
			t.Run(fmt.Sprintf("%s/%s, %d KiB", rule, name, size>>10), func(t *testing.T) {
				var err error
				if used, most := Allocated(func() { err = decode([]byte(content)) }), 2*len(content)+Refused; used > most {
					t.Errorf("%d KiB were allocated for %d KiB, want %d KiB at most", used>>10, len(content)>>10, most>>10)
				}
				if err == nil {
					t.Fatal("the document is not refused")
				}
				if text := err.Error(); strings.Contains(text, "xxxx") || len(text) > 1<<10 {
					t.Errorf("the error repeats content: %.200s", text)
				}
			})
		}
	}
}

// Bounded requires that a function stays within the cost of any input.
func Bounded(t testing.TB, size int, do func()) {
	t.Helper()
	began := processor(t)
	most := Cost
	if raced { // The race detector makes pools drop items at random.
		most *= 8
	}
	if used := Allocated(do); used > most {
		t.Errorf("%d MiB were allocated for %d bytes, want %d MiB at most", used>>20, size, most>>20)
	}
	if worked := processor(t) - began; worked > Work {
		t.Errorf("the processor worked %v for %d bytes, want %v at most", worked, size, Work)
	}
}

// Linear requires that four times the input takes about four times the memory and the CPU time, not sixteen times. It
// takes the fastest of several runs, to exclude the load of the machine. Short times are not compared, because noise
// exceeds their growth.
func Linear(t *testing.T, n int, do func(n int)) {
	t.Helper()
	const floor, factor = 50 * time.Millisecond, 12
	measure := func(n int) (bytes int, took time.Duration) {
		for try := range 5 {
			began := processor(t)
			used := Allocated(func() { do(n) })
			if once := processor(t) - began; try == 0 || once < took {
				took = once
			}
			bytes = used
		}
		return bytes, took
	}
	one, once := measure(n)
	four, fourfold := measure(4 * n)
	if four > factor*(one+64<<10) || fourfold > factor*once+floor {
		t.Errorf("%d KiB and %s for %d, but %d KiB and %s for %d", one>>10, once, n, four>>10, fourfold, 4*n)
	}
}

// processor returns the CPU time of the process, without that of other processes.
func processor(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Allocated returns the number of bytes that a function allocates, which is at least the peak.
func Allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}
