package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/yaml"
)

// notRead is the exit code if a file could not be read.
const notRead = 2

// problems is the error for files with problems, each with its file. It also has the exit code. The text is printed
// as it is.
type problems struct {
	lines []string
	code  int
}

func (p *problems) Error() string { return strings.Join(p.lines, "\n") }

// ReadConfig reads and checks the configuration as a start does. It returns the effective configuration, and
// warnings.
type ReadConfig func(*ConfigFlags) (any, []string, error)

// ValidateConfig returns the verb that reports whether an executable would start with each of some files. A file is
// read once, as it may be a pipe.
func ValidateConfig(read ReadConfig) Subcommand {
	v := &validation{read: read}
	return Subcommand{
		Name: "validate-config", Operand: "FILE...", Fault: notRead,
		Codes: []Term{{"0", "no fault"}, {"1", "a fault"}, {"2", "an error"}},
		Short: "Check configuration files, and report each fault with its key",
		Long: "FILE may be - for standard input. No request is sent to a cluster.\nFaults are printed on stderr as FILE: KEY: FAULT, warnings on stdout;\n" +
			"with -o json both on stdout, as objects with file, severity and message.",
		Arguments: func(files []string) error {
			if len(files) == 0 {
				return errors.New("want at least one FILE")
			}
			return nil
		},
		Flags: func(set *pflag.FlagSet) {
			set.BoolVar(&v.strict, "strict-config", true, "treat unknown keys as faults, not as warnings")
			set.BoolVar(&v.effective, "effective", false, "print the faultless configuration with all defaults")
			set.StringVarP(&v.output, "output", "o", "", "print faults and warnings as json")
			v.below.addDefaults(set)
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			if v.output != "" && (v.output != "json" || v.effective) {
				return errors.New("--output: want json, and not with --effective")
			}
			return v.all(set.Args(), out)
		},
	}
}

// validation is one run of the verb.
type validation struct {
	read              ReadConfig
	strict, effective bool
	output            string
	below             ConfigFlags
}

// remark is an error or a warning in JSON.
type remark struct {
	File     string `json:"file"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

// validated is a file with its errors and warnings.
type validated struct {
	flags            ConfigFlags
	cfg              any
	faults, warnings []string
}

// check validates a file. It returns an error if the file cannot be read.
func (v *validation) check(name string) (*validated, error) {
	f := &validated{flags: ConfigFlags{File: name, Strict: v.strict, Defaults: v.below.Defaults, Profile: v.below.Profile}}
	content, err := f.flags.Content()
	if err != nil {
		return nil, err
	}
	if err := notEmpty(content); err != nil {
		f.faults = []string{err.Error()}
		return f, nil //nolint:nilerr // The error is in the file, and is part of the result.
	}
	f.cfg, f.warnings, err = v.read(&f.flags)
	var all utilerrors.Aggregate
	switch {
	case errors.As(err, &all):
		for _, single := range utilerrors.Flatten(all).Errors() {
			f.faults = append(f.faults, single.Error())
		}
	case err != nil:
		f.faults = []string{err.Error()}
	default:
		// A start uses the last of duplicate keys (CFG-3).
		if _, err := yaml.YAMLToJSONStrict(content); err != nil {
			f.faults = []string{strings.ReplaceAll(err.Error(), "\n ", "")}
		}
	}
	return f, nil
}

// all validates files, and prints the requested report. It continues after a file that cannot be read.
func (v *validation) all(names []string, out io.Writer) error {
	found, remarks := &problems{}, []remark{}
	for i, name := range names {
		f, err := v.check(name)
		if err != nil {
			f = &validated{faults: []string{err.Error()}}
			found.code = notRead
		}
		if len(f.faults) > 0 {
			found.code = max(found.code, 1)
		}
		for _, text := range f.faults {
			found.lines = append(found.lines, strings.TrimSpace(name+": "+text))
			remarks = append(remarks, remark{name, "error", text})
		}
		for _, text := range f.warnings {
			remarks = append(remarks, remark{name, "warning", text})
		}
		if v.output == "" {
			title := ""
			if v.effective && len(names) > 1 {
				title = strings.Repeat("---\n", min(i, 1)) + "# " + name + "\n"
			}
			if err := v.print(out, title, name, f); err != nil {
				return err
			}
		}
	}
	switch {
	case v.output != "":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(remarks); err != nil {
			return err
		}
		if found.code > 0 {
			return ExitCode(found.code)
		}
		return nil
	case found.code > 0:
		return found
	}
	return nil
}

// print prints a title, the warnings about a file and, if requested, the effective configuration.
func (v *validation) print(out io.Writer, title, name string, f *validated) error {
	var text strings.Builder
	text.WriteString(title)
	for _, warning := range f.warnings {
		fmt.Fprintf(&text, "%s: warning: %s\n", name, warning)
	}
	if _, err := io.WriteString(out, text.String()); err != nil || !v.effective || len(f.faults) > 0 {
		return err
	}
	effective, err := yaml.Marshal(f.cfg)
	if err != nil {
		return err
	}
	_, err = out.Write(effective)
	return err
}

// notEmpty refuses an empty file, because no user validates one on purpose. A start treats it as {} (CFG-2).
func notEmpty(content []byte) error {
	values, err := decodeMap(content)
	if err == nil && len(values) == 0 && documents(content) == 0 {
		return errors.New("the file holds no configuration")
	}
	return nil
}
