package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clone makes a clone of a reference with commits to files, one a day from 2026-08-01 on.
func clone(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	do := func(environment []string, arguments ...string) {
		command := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, arguments...)...)
		command.Env = append(os.Environ(), environment...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, out)
		}
	}
	do(nil, "init", "-q", "-b", "master")
	for i, file := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte{byte('a' + i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 8, 1+i, 12, 0, 0, 0, time.UTC).Format(time.RFC3339)
		do(nil, "add", ".")
		do([]string{"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at}, "commit", "-q", "-m", "Change "+file+" (#"+string(rune('1'+i))+")")
	}
	return dir
}

func logged(t *testing.T, base, rows string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "docs", "internals"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "# Log\n\nBase: `" + base + "` of 2026-08-03; with commits from 2026-08-02 on.\n\n| change | title | answer | here |\n|---|---|---|---|\n" + rows
	if err := os.WriteFile(filepath.Join(root, "docs", "internals", "reference-log.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFollow(t *testing.T) {
	reference := clone(t, "pkg/resourcemanager/old.go", "pkg/admissioncontroller/a.go", "pkg/resourcemanager/b.go", "pkg/gardenlet/c.go", "pkg/utils/graph/d.go")
	base, err := git(reference, "rev-parse", "HEAD~2")
	if err != nil {
		t.Fatal(err)
	}
	base = base[:10]
	now := time.Date(2026, 8, 13, 13, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ base, rows, want, err string }{
		"all have answers": {base, "| #2 | x | taken | y |\n| #3 | x | not ours | y |\n| #5 | x | open | y |\n| #99 | x | coming | y |\n",
			"is 10 days old; 1 commits since then touch our paths, and 2 in the time before it", ""},
		"a commit without an answer": {base, "| #2 | x | taken | y |\n| #3 | x | taken | y |\n", "NO ANSWER  2026-08-05", "1 commits have no answer"},
		"an answer that is none":     {base, "| #2 | x | perhaps | y |\n", "", `#2 has the answer "perhaps"`},
		"two answers":                {base, "| #2 | x | taken | y |\n| #2 | x | open | y |\n", "", "#2 has two rows"},
		"a base that is not there":   {"0123456789", "", "", "the base 0123456789: git log"},
	} {
		var out strings.Builder
		err := follow(logged(t, c.base, c.rows), reference, now, &out)
		if !strings.Contains(out.String(), c.want) || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q: %s", name, err, c.err, out.String())
		}
		if strings.Contains(out.String(), "gardenlet") || strings.Contains(out.String(), "old.go") {
			t.Errorf("%s: a commit of other paths, or from before, is listed: %s", name, out.String())
		}
	}
}

// The log of this repository is where make follow looks for it, and can be read.
func TestOwnLog(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "internals", "reference-log.md"))
	if err != nil {
		t.Fatal(err)
	}
	if l, err := parse(string(content)); err != nil || l.base == "" {
		t.Errorf("%+v: %v", l, err)
	}
	err = follow(filepath.Join("..", "..", ".."), t.TempDir(), time.Now(), io.Discard)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is no clone: %v", err)
	}
}
