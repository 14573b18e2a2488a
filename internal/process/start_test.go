package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// logged returns what a start logs, a map for each line.
func logged(t *testing.T, level string, body func(logr.Logger) error, arguments ...string) []map[string]any {
	t.Helper()
	var log bytes.Buffer
	command := executable(nil, nil, &log)
	command.Prepare = func(*pflag.FlagSet) (logr.Logger, func() error, error) {
		logger := NewLogger(level, "json", &log)
		return logger, func() error { return body(logger) }, nil
	}
	run(t, command, arguments...)
	var lines []map[string]any
	for line := range strings.Lines(log.String()) {
		entry := map[string]any{}
		must.Succeed(t, json.Unmarshal([]byte(line), &entry), "%s", line)
		lines = append(lines, entry)
	}
	return lines
}

// messages returns the messages of lines.
func messages(lines []map[string]any) []string {
	var all []string
	for _, line := range lines {
		text, _ := line["msg"].(string)
		all = append(all, text)
	}
	return all
}

// TestFlagsInTheLog: each flag has a line, and a deprecated one only if it is set.
func TestFlagsInTheLog(t *testing.T) {
	nothing := func(logr.Logger) error { return nil }
	for name, c := range map[string]struct {
		arguments, want []string
	}{
		"CLI-7/no flag is set":          {nil, []string{"Starting thing", "FLAG: --config=", "FLAG: --help=false", "FLAG: --version="}},
		"CLI-7/a flag is set":           {[]string{"--config=f"}, []string{"Starting thing", "FLAG: --config=f", "FLAG: --help=false", "FLAG: --version="}},
		"CLI-7/a deprecated one is set": {[]string{"--old=5"}, []string{"Starting thing", "FLAG: --config=", "FLAG: --help=false", "FLAG: --old=5", "FLAG: --version="}},
	} {
		t.Run(name, func(t *testing.T) {
			expect.DeepEqual(t, messages(logged(t, "info", nothing, c.arguments...)), c.want)
		})
	}
}

// TestPlainFault: no error has a stack trace, neither the one that ends the process nor others (OBS-1).
func TestPlainFault(t *testing.T) {
	lines := logged(t, "error", func(log logr.Logger) error {
		log.Error(errors.New("a"), "Within")
		return errors.New("stat /none: no such file or directory")
	})
	if diff := cmp.Diff([]string{"Within", "Ending after an error"}, messages(lines)); diff != "" {
		t.Fatal(diff)
	}
	_, within := lines[0]["stacktrace"]
	_, ending := lines[1]["stacktrace"]
	expect.True(t, !within && !ending && lines[1]["error"] == "stat /none: no such file or directory",
		"OBS-1: got %v", lines)
}

// TestRoutineOfLibraries: what libraries say of each webhook, controller and failed probe is logged at debug; what else they say is at info.
func TestRoutineOfLibraries(t *testing.T) {
	body := func(log logr.Logger) error {
		for message := range routine {
			log.WithName("library").Info(message, "path", "/a")
			log.V(1).Info(message)
		}
		log.Info("Serving metrics server")
		return nil
	}
	got := messages(logged(t, "info", body))
	expect.True(t, len(got) == 5 && got[4] == "Serving metrics server", "CLI-7: at info: %v", got)
	lines := logged(t, "debug", body)
	expect.Equal(t, len(lines), 5+2*len(routine), "CLI-7: at debug: %v", messages(lines))
	for _, line := range lines {
		text, _ := line["msg"].(string)
		expect.Equal(t, routine[text], line["level"] == "debug", "CLI-7: got %v", line)
	}
}
