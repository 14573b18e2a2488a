package process

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// finding is something about a line of a file.
type problem struct {
	line int
	text string
}

// findings are the faults of a file. They are printed as they are, so that editors find the lines.
type problems []string

func (f problems) Error() string { return strings.Join(f, "\n") }

// ValidateConfig returns the command that says whether an executable would start with a file. read is what the start does, without anything but
// the file; it returns the effective configuration. The file is read once, as it may be a pipe.
func ValidateConfig(format FileFormat, read func(*ConfigFlags) (any, []shared.Warning, error)) Subcommand {
	var strict, effective bool
	var below ConfigFlags
	return Subcommand{
		Name: "validate-config", Operand: "FILE",
		Short: "Check a configuration file, and report each fault with its line",
		Long: "FILE may be - for standard input. The command starts nothing and sends no request to a cluster.\nFaults are printed on stderr, one a line, as FILE:LINE: KEY: FAULT; warnings on stdout.\n" +
			"An unknown key is a fault here; at a start it is one with --strict-config only.",
		Flags: func(set *pflag.FlagSet) {
			set.BoolVar(&strict, "strict-config", true, "treat unknown keys as faults; with =false they are warnings, as at a start")
			set.BoolVar(&effective, "effective", false, "print the configuration with all defaults, and where each value comes from, if there is no fault")
			below.addDefaults(set)
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			file := ConfigFlags{File: set.Arg(0), Defaults: below.Defaults, Profile: below.Profile}
			content, err := file.Content()
			if err != nil {
				return err
			}
			if err := notEmpty(content); err != nil {
				return problems{file.File + ":1: " + err.Error()}
			}
			cfg, warnings, err := read(&file)
			lines := newConfigLines(content, format)
			faults := lines.faults(err)
			var known []problem
			for _, warning := range warnings {
				if warning.Unknown && strict {
					faults = append(faults, problem{lines.of(warning.Path), warning.Path + ": " + strings.Replace(warning.Text, " "+warning.Path+" is ignored", "", 1)})
				} else {
					known = append(known, problem{lines.of(warning.Path), "warning: " + warning.Text})
				}
			}
			for _, d := range lines.duplicates {
				faults = append(faults, problem{d.line, fmt.Sprintf("%s: already set on line %d", d.path, d.first)})
			}
			for _, line := range sorted(file.File, known) {
				if _, err := fmt.Fprintln(out, line); err != nil {
					return err
				}
			}
			if len(faults) > 0 {
				return problems(sorted(file.File, faults))
			}
			if !effective {
				return nil
			}
			return printEffective(out, cfg, file.layers)
		},
	}
}

// notEmpty refuses an empty file: no user validates an empty file on purpose. A start treats it as {} (CFG-2).
func notEmpty(content []byte) error {
	values, err := decodeMap(content)
	if err == nil && len(values) == 0 && documents(content) == 0 {
		return errors.New("the file holds no configuration")
	}
	return nil
}

// faults are the single errors of what a file was refused for.
func (l *configLines) faults(err error) []problem {
	if err == nil {
		return nil
	}
	var kind *kindError
	if errors.As(err, &kind) {
		return []problem{{l.of(kind.key), kind.text}}
	}
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return []problem{{lineOf(err), err.Error()}}
	}
	var faults []problem
	for _, single := range utilerrors.Flatten(all).Errors() {
		line := lineOf(single)
		if wrong := (*field.Error)(nil); errors.As(single, &wrong) {
			line = l.of(wrong.Field)
		}
		faults = append(faults, problem{line, single.Error()})
	}
	return faults
}

// sorted returns findings by line, each with the name of the file.
func sorted(file string, all []problem) []string {
	slices.SortStableFunc(all, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = fmt.Sprintf("%s:%d: %s", file, f.line, f.text)
	}
	return lines
}
