package process

import (
	"cmp"
	"encoding/json"
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

// problem is a fault or a warning about a line of a file.
type problem struct {
	line int
	text string
}

// notRead is the exit code if a file could not be read.
const notRead = 2

// problems are the faults of a file. They are printed as they are, so that editors find the lines.
type problems []string

func (f problems) Error() string { return strings.Join(f, "\n") }

// unread has the faults of files of which some could not be read.
type unread struct{ problems }

func (u unread) Unwrap() error { return u.problems }

// ConfigKind is a kind of configuration file. Read does what a start does, without anything but the file; it returns the effective configuration.
type ConfigKind struct {
	Format FileFormat
	Read   func(*ConfigFlags) (any, []shared.Warning, error)
}

// ValidateConfig returns the command that reports whether an executable would start with each of some files. A file is read once, as it may be a pipe.
func ValidateConfig(kind ConfigKind) Subcommand {
	v := &validation{kind: kind}
	return Subcommand{
		Name: "validate-config", Operand: "FILE...", Fault: notRead,
		Codes: []Term{{"0", "no fault"}, {"1", "a fault"}, {"2", "an error"}},
		Short: "Check configuration files, and report each fault with its line",
		Long: "FILE may be - for standard input. No request is sent to a cluster.\nFaults are printed on stderr as FILE:LINE: KEY: FAULT, warnings on stdout;\n" +
			"with -o json both on stdout, as objects with file, line, severity and message.",
		Arguments: func(files []string) error {
			if len(files) == 0 {
				return errors.New("want at least one FILE")
			}
			return nil
		},
		Flags: func(set *pflag.FlagSet) {
			set.BoolVar(&v.strict, "strict-config", true, "treat unknown keys as faults, not as warnings")
			set.BoolVar(&v.effective, "effective", false, "print the faultless configuration with all defaults, and the origin of each value")
			set.StringVarP(&v.output, "output", "o", "", "print faults and warnings as json")
			v.below.addDefaults(set)
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			if v.output != "" && (v.output != "json" || v.effective) {
				return errors.New("--output: want json, and not with --effective")
			}
			if set.NArg() == 1 && v.output == "" {
				return v.one(set.Arg(0), out)
			}
			return v.all(set.Args(), out)
		},
	}
}

// validation is one call of the command.
type validation struct {
	kind              ConfigKind
	strict, effective bool
	output            string
	below             ConfigFlags
}

// validated is a file with its faults and warnings.
type validated struct {
	ConfigFlags
	cfg           any
	faults, known []problem
}

// remark is a fault or a warning, as JSON.
type remark struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// check checks a file. The error is that it cannot be read.
func (v *validation) check(name string) (*validated, error) {
	f := &validated{ConfigFlags: ConfigFlags{File: name, Defaults: v.below.Defaults, Profile: v.below.Profile}}
	content, err := f.Content()
	if err != nil {
		return nil, err
	}
	if err := notEmpty(content); err != nil {
		f.faults = []problem{{1, err.Error()}}
		return f, nil //nolint:nilerr // The fault is the file's.
	}
	cfg, warnings, err := v.kind.Read(&f.ConfigFlags)
	lines := newConfigLines(content, v.kind.Format)
	f.cfg, f.faults = cfg, lines.faults(err)
	for _, warning := range warnings {
		if warning.Unknown && v.strict {
			f.faults = append(f.faults, problem{lines.of(warning.Path), warning.Path + ": " + strings.Replace(warning.Text, " "+warning.Path+" is ignored", "", 1)})
		} else {
			f.known = append(f.known, problem{lines.of(warning.Path), warning.Text})
		}
	}
	for _, d := range lines.duplicates {
		f.faults = append(f.faults, problem{d.line, fmt.Sprintf("%s: already set on line %d", d.path, d.first)})
	}
	return f, nil
}

// one checks a file, and prints the requested report.
func (v *validation) one(name string, out io.Writer) error {
	f, err := v.check(name)
	if err != nil {
		return err
	}
	for _, line := range sorted(name, "warning: ", f.known) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	if len(f.faults) > 0 {
		return problems(sorted(name, "", f.faults))
	}
	if !v.effective {
		return nil
	}
	return printEffective(out, f.cfg, f.layers)
}

// all checks several files. A file that cannot be read does not keep the others from being checked.
func (v *validation) all(names []string, out io.Writer) error {
	var faults problems
	code := ExitCode(0)
	remarks := []remark{}
	for i, name := range names {
		if v.output == "" {
			if v.effective {
				if _, err := fmt.Fprintf(out, "%s# %s\n", strings.Repeat("---\n", min(i, 1)), name); err != nil {
					return err
				}
			}
			err := v.one(name, out)
			if more := (problems)(nil); errors.As(err, &more) {
				faults = append(faults, more...)
				code = max(code, 1)
			} else if err != nil {
				code = notRead
				faults = append(faults, name+": "+err.Error())
			}
			continue
		}
		f, err := v.check(name)
		if err != nil {
			code = notRead
			remarks = append(remarks, remark{File: name, Severity: "error", Message: err.Error()})
			continue
		}
		if len(f.faults) > 0 {
			code = max(code, 1)
		}
		for severity, list := range map[string][]problem{"error": f.faults, "warning": f.known} {
			for _, p := range list {
				remarks = append(remarks, remark{name, p.line, severity, p.text})
			}
		}
	}
	if v.output == "" {
		if code == notRead {
			return unread{faults}
		}
		if len(faults) > 0 {
			return faults
		}
		return nil
	}
	slices.SortStableFunc(remarks, func(a, b remark) int {
		return cmp.Or(cmp.Compare(slices.Index(names, a.File), slices.Index(names, b.File)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Severity, b.Severity))
	})
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(remarks); err != nil {
		return err
	}
	if code != 0 {
		return code
	}
	return nil
}

// notEmpty refuses an empty file: no user validates an empty file on purpose. A start treats it as {} (CFG-2).
func notEmpty(content []byte) error {
	values, err := decodeMap(content)
	if err == nil && len(values) == 0 && documents(content) == 0 {
		return errors.New("the file holds no configuration")
	}
	return nil
}

// faults returns the single errors for which a file was refused.
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

// sorted returns remarks by line, each with the name of the file.
func sorted(file, severity string, all []problem) []string {
	slices.SortStableFunc(all, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = fmt.Sprintf("%s:%d: %s%s", file, f.line, severity, f.text)
	}
	return lines
}
