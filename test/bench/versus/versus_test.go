package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func file(t *testing.T, mode os.FileMode) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "executable")
	if err := os.WriteFile(name, nil, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// Without the executables of the reference nothing runs, and the text says what is missing.
func TestMissing(t *testing.T) {
	there, plain := file(t, 0o755), file(t, 0o644)
	for name, tc := range map[string]struct {
		o    options
		want []string
	}{
		"none":          {options{}, []string{"REF_RM is not set", "REF_AC is not set", "usage: make versus REF_RM="}},
		"one":           {options{resourceManager: there}, []string{"REF_AC is not set"}},
		"not there":     {options{resourceManager: there, admissionController: "/none"}, []string{"REF_AC: stat /none: no such file or directory"}},
		"no executable": {options{resourceManager: plain, admissionController: there}, []string{"REF_RM: " + plain + " is no executable"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, progress strings.Builder
			if code := run(t.Context(), tc.o, tools{}, &out, &progress); code != 2 {
				t.Errorf("exit code %d", code)
			}
			for _, want := range tc.want {
				if !strings.Contains(progress.String(), want) {
					t.Errorf("not said: %s in %s", want, progress.String())
				}
			}
		})
	}
}

// Figures of both sides stand in one row, also those with equal words, and a side that fails ends with exit code 1 and the figures that there are.
func TestSideBySide(t *testing.T) {
	o := options{resourceManager: file(t, 0o755), admissionController: file(t, 0o755), bin: "bin", only: "x", turns: 1}
	handed := 0
	fake := tools{
		bench: func(_ context.Context, bin, _ string) ([]row, error) {
			if bin == "bin" {
				return []row{{"a", "1", "s", "0 … 2"}, {"… memory", "10", "MiB", ""}, {"b", "3", "s", ""}, {"… memory", "20", "MiB", ""}, {"only ours", "5", "", ""}}, nil
			}
			for _, name := range []string{"resource-manager", "admission-controller"} {
				if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
					t.Error(err)
				}
			}
			return []row{{"a", "2", "s", ""}, {"… memory", "40", "MiB", ""}, {"b", "0", "s", ""}, {"… memory", "50", "MiB", ""}, {"only theirs", "7", "", ""}}, nil
		},
		handOver: func(context.Context, options) error { handed++; return nil },
	}
	var out, progress strings.Builder
	if code := run(t.Context(), o, fake, &out, &progress); code != 0 || handed != 1 {
		t.Errorf("exit code %d, %d hand-overs: %s", code, handed, progress.String())
	}
	want := []string{
		"| what | unit | ours | spread | reference | spread | ours ÷ reference |", "|--- |--- |--- |--- |--- |--- |--- |",
		"| a | s | 1 | 0 … 2 | 2 | | 0.50 |", "| … memory | MiB | 10 | | 40 | | 0.25 |", "| b | s | 3 | | 0 | | |", "| … memory | MiB | 20 | | 50 | | 0.40 |",
		"| only ours | | 5 | | | | |", "| only theirs | | | | 7 | | |",
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("printed\n%s", strings.Join(got, "\n"))
	}

	fake.bench = func(context.Context, string, string) ([]row, error) {
		return []row{{"a", "1", "", ""}}, errors.New("it does not start")
	}
	fake.handOver = func(context.Context, options) error { return errors.New("3 UIDs changed") }
	out.Reset()
	progress.Reset()
	if code := run(t.Context(), o, fake, &out, &progress); code != 1 || !strings.Contains(out.String(), "| a") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	for _, want := range []string{"x of the reference: it does not start", "x of ours: it does not start", "the hand-over property: 3 UIDs changed"} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("not said: %s in %s", want, progress.String())
		}
	}
}
