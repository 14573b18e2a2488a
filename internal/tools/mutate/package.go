package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

//go:embed runtime.go.txt
var runtimeSource []byte

// runtimeFolder is where the overlay puts the switches; there is no such folder on disk.
const runtimeFolder = "internal/zzmutate"

// mutated is a package whose defects are behind switches, and its test executable.
type mutated struct {
	path, dir, executable string
	// arguments are given to each run of the executable.
	arguments []string
	mutants   []mutant
}

// load parses and type-checks packages of the module at root.
func load(root string, patterns []string) ([]*packages.Package, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule, Dir: root}, patterns...)
	if err != nil {
		return nil, err
	}
	var broken []error
	for _, p := range loaded {
		for _, e := range p.Errors {
			broken = append(broken, e)
		}
	}
	return loaded, errors.Join(broken...)
}

// compile puts the defects of packages behind switches and compiles the tests of the package tested, "" for the first one.
// A defect that does not compile is dropped, and the rest compiled again.
func compile(ctx context.Context, root, work string, ps []*packages.Package, tested string, wanted func(file string, line int) bool) (*mutated, error) {
	module, err := modulePath(root)
	if err != nil {
		return nil, err
	}
	skip := map[string]bool{}
	for range 20 {
		overlay := map[string]string{}
		m := &mutated{path: ps[0].PkgPath, dir: ps[0].Dir, executable: filepath.Join(work, "mutated.test")}
		next := 0
		for _, p := range ps {
			if err := rewritePackage(root, work, module, p, wanted, skip, &next, m, overlay); err != nil {
				return nil, err
			}
		}
		if len(m.mutants) == 0 {
			return m, nil
		}
		if tested != "" {
			m.path, m.dir = tested, filepath.Join(root, strings.TrimPrefix(tested, module+"/"))
		}
		output, err := build(ctx, root, work, m, overlay)
		if err == nil {
			return m, nil
		}
		if !dropUncompilable(root, output, m.mutants, skip) {
			return nil, fmt.Errorf("%s does not compile with its defects behind switches: %w\n%s", m.path, err, output)
		}
	}
	return nil, fmt.Errorf("%s: too many defects do not compile", ps[0].PkgPath)
}

func rewritePackage(root, work, module string, p *packages.Package, wanted func(string, int) bool, skip map[string]bool, next *int, m *mutated, overlay map[string]string) error {
	for i, f := range p.Syntax {
		name := p.CompiledGoFiles[i]
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if strings.Contains(filepath.Base(name), "zz_generated") || strings.HasPrefix(relative, "..") || ast.IsGenerated(f) {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r := &rewriter{files: p.Fset, info: p.TypesInfo, source: source, path: filepath.ToSlash(relative), next: next, skip: skip,
			wanted: func(line int) bool { return wanted(filepath.ToSlash(relative), line) }}
		r.file(f)
		text := r.result(module+"/"+runtimeFolder, f.Name)
		if text == nil {
			continue
		}
		m.mutants = append(m.mutants, r.mutants...)
		to := filepath.Join(work, strconv.Itoa(len(overlay))+".go")
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
		overlay[name] = to
	}
	return nil
}

func modulePath(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(line, "module "), nil
}

func build(ctx context.Context, root, work string, m *mutated, overlay map[string]string) (string, error) {
	runtime := filepath.Join(work, "runtime.go")
	if err := os.WriteFile(runtime, runtimeSource, 0o600); err != nil {
		return "", err
	}
	overlay[filepath.Join(root, runtimeFolder, "runtime.go")] = runtime
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	file := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", file, "-o", m.executable, m.path)
	c.Dir = root
	output, err := c.CombinedOutput()
	if err == nil {
		if _, missing := os.Stat(m.executable); missing != nil {
			return "", fmt.Errorf("%s: %w", m.path, errNoTests)
		}
	}
	return string(output), err
}

var errNoTests = errors.New("the package has no tests")

// compilerError finds the place of an error. Edits keep lines, so that it is the line of the source.
var compilerError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// dropUncompilable adds the defects on the lines that the compiler names to those to skip, and reports whether there are any.
func dropUncompilable(root, output string, mutants []mutant, skip map[string]bool) bool {
	found := false
	for _, place := range compilerError.FindAllStringSubmatch(output, -1) {
		name := place[1]
		if filepath.IsAbs(name) {
			name, _ = filepath.Rel(root, name)
		}
		for _, m := range mutants {
			if m.file == filepath.ToSlash(filepath.Clean(name)) && strconv.Itoa(m.line) == place[2] && !skip[m.key()] {
				skip[m.key()], found = true, true
			}
		}
	}
	return found
}

// changedLines returns the lines that differ from a revision, by file, as git reports them; of a file that git does not track, all.
func changedLines(root, since string) (map[string][][2]int, error) {
	output, err := git(root, "diff", "-U0", "--no-color", since, "--", "*.go")
	if err != nil {
		return nil, err
	}
	untracked, err := git(root, "ls-files", "--others", "--exclude-standard", "--", "*.go")
	if err != nil {
		return nil, err
	}
	changed := map[string][][2]int{}
	file := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "+++ "); ok {
			file = strings.TrimPrefix(rest, "b/")
			continue
		}
		if h := hunk.FindStringSubmatch(line); h != nil && file != "/dev/null" {
			first, _ := strconv.Atoi(h[1])
			count := 1
			if h[2] != "" {
				count, _ = strconv.Atoi(h[2])
			}
			changed[file] = append(changed[file], [2]int{first, first + max(count, 1) - 1})
		}
	}
	for line := range strings.Lines(untracked) {
		changed[strings.TrimSpace(line)] = [][2]int{{1, math.MaxInt}}
	}
	return changed, nil
}

func git(root string, arguments ...string) (string, error) {
	c := exec.Command("git", arguments...)
	c.Dir = root
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", arguments[0], err, &stderr)
	}
	return string(output), nil
}

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
