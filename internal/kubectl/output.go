package kubectl

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/process"
)

// format is the value of -o.
type format string

// Formats; text is the default.
const (
	asText format = ""
	asWide format = "wide"
	asJSON format = "json"
	asYAML format = "yaml"
	asName format = "name"
)

// asJSONPath is the prefix of a format with a template.
const asJSONPath = "jsonpath="

var formats = []string{string(asWide), string(asJSON), string(asYAML), string(asName), asJSONPath}

// structured reports whether encode prints the report.
func (f format) structured() bool {
	return f == asJSON || f == asYAML || strings.HasPrefix(string(f), asJSONPath)
}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "form" }

// Set implements pflag.Value.
func (f *format) Set(value string) error {
	if template, found := strings.CutPrefix(value, asJSONPath); found && template != "" {
		if _, err := newJSONPath(template); err != nil {
			return err
		}
	} else if !slices.Contains(formats, value) || found {
		return fmt.Errorf("want %s", strings.Join(formats, ", ")+"TEMPLATE")
	}
	*f = format(value)
	return nil
}

func (f *format) add(set *pflag.FlagSet) {
	set.VarP(f, "output", "o", "output `format`: wide, json, yaml, name or jsonpath=TEMPLATE")
}

// newJSONPath parses a template of kubectl, which may lack the braces, and the first dot.
func newJSONPath(template string) (*jsonpath.JSONPath, error) {
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	parsed := jsonpath.New("output").AllowMissingKeys(true)
	return parsed, parsed.Parse(template)
}

// encode prints a value as JSON or YAML, or the result of a template.
func encode(out io.Writer, f format, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if template, found := strings.CutPrefix(string(f), asJSONPath); found {
		parsed, err := newJSONPath(template)
		if err != nil {
			return err
		}
		var plain any
		if err := json.Unmarshal(content, &plain); err != nil {
			return err
		}
		return parsed.Execute(out, plain)
	}
	if f == asYAML {
		if content, err = yaml.JSONToYAML(content); err != nil {
			return err
		}
	} else {
		content = append(content, '\n')
	}
	_, err = out.Write(content)
	return err
}

// style colours text on terminals.
type style struct{ colours bool }

// styleOf returns the style for a writer. Only terminals get colours, unless the user has set NO_COLOR.
func styleOf(out io.Writer) style {
	return style{colours: process.IsTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Colours by their codes.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s style) in(colour, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// ago returns the time since then, in the way that kubectl prints ages.
func ago(now, then time.Time) string {
	if then.IsZero() {
		return "?"
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}
