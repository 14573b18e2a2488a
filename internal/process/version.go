package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/version"
	"sigs.k8s.io/yaml"
)

// build is the output of the verb version in JSON or YAML.
type build struct {
	Name string `json:"name"`
	apimachineryversion.Info
}

// versionVerb returns the verb that prints the version, in the same form as --version.
func (c *Command) versionVerb() Subcommand {
	var format OutputFormat
	return Subcommand{
		Name: "version", Short: "Print the version",
		Flags: format.Add,
		Run: func(_ *pflag.FlagSet, out io.Writer) error {
			if format == "" {
				wanted := versionFlag("true")
				wanted.print(c.Name, out)
				return nil
			}
			return format.Print(out, build{c.Name, version.Get()})
		},
	}
}

// OutputFormat is the output format of a verb: OutputJSON, OutputYAML, or "" for the verb's default.
type OutputFormat string

// The output formats of verbs.
const (
	OutputJSON OutputFormat = "json"
	OutputYAML OutputFormat = "yaml"
)

// String implements pflag.Value.
func (f *OutputFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *OutputFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (f *OutputFormat) Set(value string) error {
	switch OutputFormat(value) {
	case OutputJSON, OutputYAML:
		*f = OutputFormat(value)
		return nil
	}
	return errors.New("want json or yaml")
}

// Add adds the flag for the format.
func (f *OutputFormat) Add(set *pflag.FlagSet) {
	set.VarP(f, "output", "o", "output `format`: json or yaml")
}

// Print prints a value in JSON, or in YAML, which is also the default.
func (f *OutputFormat) Print(out io.Writer, value any) error {
	var content []byte
	var err error
	if *f == OutputJSON {
		content, err = json.MarshalIndent(value, "", "  ")
		content = append(content, '\n')
	} else {
		content, err = yaml.Marshal(value)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return err
}

// noArguments refuses arguments, as cobra does, and suggests verbs (CLI-4).
func noArguments(cmd *cobra.Command, arguments []string) error {
	err := cobra.NoArgs(cmd, arguments)
	if err == nil {
		return nil
	}
	if near := cmd.SuggestionsFor(arguments[0]); len(near) > 0 {
		return fmt.Errorf("%w, did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}
