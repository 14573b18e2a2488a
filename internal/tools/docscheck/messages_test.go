package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMessages: each constant message at error and info is on the page about logs, and the page has no other.
func TestMessages(t *testing.T) {
	const content = "# Logs\n\n| level | content |\n|---|---|\n| `error` | no message |\n\n| message | do |\n|---|---|\n| `Reconciler error`, `Went well` | nothing |\n"
	for name, c := range map[string]struct {
		path, code string
		want       string
	}{
		"documented":        {"internal/x/x.go", `w.log.Error(err, "Reconciler error"); log.FromContext(ctx).WithValues("new", 1).Info("Went well")`, ""},
		"not documented":    {"cmd/x/x.go", `w.log.Error(err, "Reconciler error"); log.Info("Went well"); r.Log.WithName("x").Error(nil, "New")`, `says nothing about the message "New" at level error`},
		"a key":             {"internal/x/x.go", `w.log.Error(err, "Reconciler error", "new", 1); log.WithValues("new", 2).Info("Went well")`, ""},
		"for debugging":     {"internal/x/x.go", `w.log.Error(err, "Reconciler error"); log.Info("Went well"); log.V(1).Info("New")`, ""},
		"no logger":         {"internal/x/x.go", `w.log.Error(err, "Reconciler error"); log.Info("Went well"); http.Error(w, "New", 1); t.Error("x")`, ""},
		"not constant":      {"internal/x/x.go", `w.log.Error(err, "Reconciler error"); log.Info("Went well"); log.Info("New: " + name)`, "internal/x/x.go:4: the message of a log line must be constant"},
		"gone from code":    {"internal/x/x.go", `w.log.Error(err, "Reconciler error")`, `no code logs the message "Went well"`},
		"tools do not log":  {"internal/tools/x.go", `log.Info("New")`, `no code logs the message`},
		"the first lines":   {beginnings, `w.log.Error(err, "Reconciler error"); log.Info("Went well"); log.Info("Starting " + name)`, ""},
		"a line of no code": {"internal/x/x_test.go", `log.Info("New")`, `no code logs the message`},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, filepath.FromSlash(c.path))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("package x\n\nfunc f() {\n"+c.code+"\n}\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			var problems []string
			for _, problem := range checkMessages(root, []*page{parse(logsPage, content)}) {
				if problem != nil {
					problems = append(problems, problem.Error())
				}
			}
			if got := strings.Join(problems, "\n"); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
