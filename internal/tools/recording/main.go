// recording draws the terminal sessions in pages of the documents as SVG: docs/recordings/<name>.svg from all blocks
// that are marked
//
//	<!-- recording: name -->
//
// in the lines right before them. Tests run these blocks and compare their output, so that a picture shows the real
// output of the commands. Commands that only wait are left out, and so are filters that remove ages and times. The
// colours are the same as on a terminal.
//
//	go run -C internal/tools ./recording ../..
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var pages = []string{"docs/walkthrough.md", "test/env/quickstart/testdata/faults.md", "docs/operations/replay.md"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: recording <root of the repository>")
		os.Exit(2)
	}
	pictures, err := draw(os.Args[1])
	if err == nil {
		err = write(filepath.Join(os.Args[1], "docs", "recordings"), pictures)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func write(dir string, pictures map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, picture := range pictures {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// draw returns the pictures of all pages by their names.
func draw(root string) (map[string]string, error) {
	sessions := map[string][]string{}
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		for _, b := range blocks(string(content)) {
			sessions[b.name] = append(sessions[b.name], b.session()...)
		}
	}
	pictures := map[string]string{}
	for name, lines := range sessions {
		pictures[name] = picture(name, lines)
	}
	return pictures, nil
}

// block is a marked block: commands, and their output.
type block struct {
	name, language, text string
	// printed is the text of the block right after commands of language sh.
	printed string
}

var marked = regexp.MustCompile("(?ms)^<!-- recording: ([a-z]+) -->\n```(sh|console)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?")

func blocks(page string) []block {
	var all []block
	for _, found := range marked.FindAllStringSubmatch(page, -1) {
		all = append(all, block{name: found[1], language: found[2], text: found[3], printed: found[4]})
	}
	return all
}

const prompt = "$ "

// session returns the lines of the block on a terminal: commands begin with the prompt.
func (b *block) session() []string {
	if b.language == "console" {
		return slices.DeleteFunc(split(b.text), func(line string) bool { return line == prompt+"echo $?" })
	}
	var lines []string
	for _, command := range split(b.text) {
		if !waits(command) {
			lines = append(lines, prompt+unfiltered(command))
		}
	}
	if b.printed == "" {
		return lines
	}
	return append(lines, split(b.printed)...)
}

func split(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// waits reports whether a command only waits, or prepares a file.
func waits(command string) bool {
	return slices.ContainsFunc([]string{"kubectl wait ", "until ", "while ", "sed "}, func(begin string) bool { return strings.HasPrefix(command, begin) })
}

// unfiltered returns a command without the filters of its output, and without the parts that the test needs to
// continue after a failure.
func unfiltered(command string) string {
	for _, filter := range []string{" | sed -E", " | tr -s", " || echo"} {
		command, _, _ = strings.Cut(command, filter)
	}
	return command
}
