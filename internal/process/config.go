package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// FromEnvironment replaces the path of a kubeconfig with the value of an environment variable, if it is set (CLI-20,
// CLI-21).
func FromEnvironment(kubeconfig *string, variable string) {
	if path := os.Getenv(variable); path != "" {
		*kubeconfig = path
	}
}

// FileFormat describes the accepted configuration files.
type FileFormat struct {
	APIVersion, Kind string
	Aliases          []shared.Alias
	// Strict makes an unknown key an error.
	Strict bool
	// Profiles are the defaults of named profiles, as YAML. A configuration file overrides them.
	Profiles map[string]string
	// Converted are other accepted kinds of files, each with the function that converts a file into a configuration
	// of this kind.
	Converted map[string]func(content []byte, strict bool) (any, []string, error)
}

// ConfigFlags are the flags for a configuration file.
type ConfigFlags struct {
	// File is the path of the configuration file, "-" for standard input.
	File   string
	Strict bool
	// Defaults is the path of a defaults file, "" for DefaultsFile if it exists. Profile overrides the profile in
	// that file.
	Defaults, Profile string

	content []byte
}

// Add adds the flags.
func (f *ConfigFlags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "config", "", "path of the configuration file")
	flags.BoolVar(&f.Strict, "strict-config", false, "treat unknown keys as errors, not as warnings")
	f.addDefaults(flags)
}

func (f *ConfigFlags) addDefaults(flags *pflag.FlagSet) {
	flags.StringVar(&f.Defaults, "defaults", "", "path of a file with defaults; default: "+DefaultsFile+" if it exists")
	flags.StringVar(&f.Profile, "profile", "", "profile, before that of the defaults file: contract, or gardener for the defaults of Gardener v1.150.0-dev (b312835d)")
}

// ErrNoConfig reports that no configuration file is given (CLI-5).
var ErrNoConfig = errors.New("missing config file")

// Content returns the content of the file. The file is read once, because a pipe can be read only once.
func (f *ConfigFlags) Content() ([]byte, error) {
	if f.File == "" {
		return nil, ErrNoConfig
	}
	if f.content != nil {
		return f.content, nil
	}
	read := func() ([]byte, error) { return os.ReadFile(f.File) }
	if f.File == "-" {
		read = func() ([]byte, error) { return io.ReadAll(os.Stdin) }
	}
	content, err := read()
	if err != nil {
		return nil, fmt.Errorf("error reading config file: %w", err)
	}
	f.content = append([]byte{}, content...)
	return f.content, nil
}

// Read decodes the file over the defaults into object, and returns the warnings of DecodeConfig.
func (f *ConfigFlags) Read(format FileFormat, object any) ([]string, error) {
	content, err := f.Content()
	if err != nil {
		return nil, err
	}
	return f.decode(content, format, object)
}

// ReadDefaults decodes the defaults into object, for a start without a configuration file.
func (f *ConfigFlags) ReadDefaults(format FileFormat, object any) ([]string, error) {
	return f.decode([]byte("{}"), format, object)
}

// ReadOrDefaults is Read, or ReadDefaults if no file is given.
func (f *ConfigFlags) ReadOrDefaults(format FileFormat, object any) ([]string, error) {
	if f.File == "" {
		return f.ReadDefaults(format, object)
	}
	return f.Read(format, object)
}

// With returns flags with another file, which is not read yet; with an empty name it returns the flags themselves.
func (f *ConfigFlags) With(file string) *ConfigFlags {
	if file == "" {
		return f
	}
	return &ConfigFlags{File: file, Strict: f.Strict, Defaults: f.Defaults, Profile: f.Profile}
}

func (f *ConfigFlags) decode(content []byte, format FileFormat, object any) ([]string, error) {
	below, known, err := f.valuesBelow(format)
	if err != nil {
		return nil, err
	}
	format.Strict = f.Strict
	warnings, err := decodeOver(below, content, format, object)
	warnings = append(known, warnings...)
	if err != nil {
		return warnings, fmt.Errorf("error decoding config: %w", err)
	}
	return warnings, nil
}

// DecodeConfig decodes a configuration file into object (CFG-1 … CFG-6). It returns warnings about older and unknown
// keys (OPB-1), even with an error. The error is an aggregate of all wrong keys with their paths, unless the content
// is not YAML or has another kind. Then object has the correct keys.
func DecodeConfig(content []byte, format FileFormat, object any) ([]string, error) {
	return decodeOver(nil, content, format, object)
}

// decodeOver decodes a file over values that the file may override.
func decodeOver(below map[string]any, content []byte, format FileFormat, object any) ([]string, error) {
	file, warnings, errs, err := decodeFile(content, format)
	if err != nil {
		return warnings, err
	}
	all := merged(below, file)
	errs = append(errs, takeWrongValues(all, reflect.TypeOf(object).Elem())...)
	raw, err := json.Marshal(all)
	if err != nil {
		return warnings, err
	}
	unknown, err := kjson.UnmarshalStrict(raw, object)
	if err != nil {
		return warnings, err
	}
	unknownKeys(metrics.Registry).Set(float64(len(unknown)))
	for _, key := range unknown {
		path := ""
		if at := kjson.FieldError(nil); errors.As(key, &at) {
			path = at.FieldPath()
		}
		if format.Strict {
			errs = append(errs, field.Forbidden(field.NewPath(path), "unknown key"))
		} else {
			warnings = append(warnings, fmt.Sprintf("unknown key %s is ignored", path))
		}
	}
	// A file without a kind is printed with it.
	if typed, ok := object.(interface{ GetObjectKind() schema.ObjectKind }); ok {
		typed.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(format.APIVersion, format.Kind))
	}
	return warnings, errs.ToAggregate()
}

// decodeFile decodes a file into a map in which older keys are replaced by the present ones.
func decodeFile(content []byte, format FileFormat) (map[string]any, []string, field.ErrorList, error) {
	file, err := decodeMap(content)
	if err != nil {
		return nil, nil, nil, err
	}
	kind, _ := file["kind"].(string)
	convert, found := format.Converted[kind]
	if !found {
		warnings, errs, err := resolve(file, format)
		return file, warnings, errs, err
	}
	object, warnings, err := convert(content, format.Strict)
	if err != nil {
		return nil, warnings, nil, err
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, warnings, nil, err
	}
	file, err = decodeMap(raw)
	return file, warnings, nil, err
}

// resolve checks the kind of a file, and replaces older keys by the present ones.
func resolve(file map[string]any, format FileFormat) ([]string, field.ErrorList, error) {
	if err := checkKind(file, format); err != nil {
		return nil, nil, err
	}
	warnings, errs := shared.ResolveAliases(file, format.Aliases)
	return warnings, errs, nil
}

// errSecondDocument is the error for a file with more than one document.
var errSecondDocument = errors.New("the file has more than one document, and only one can count")

// decodeMap decodes YAML or JSON with at most one document.
func decodeMap(content []byte) (map[string]any, error) {
	raw, err := yaml.YAMLToJSON(content)
	if err != nil {
		return nil, err
	}
	if documents(content) > 1 {
		return nil, errSecondDocument
	}
	values := map[string]any{}
	if string(raw) == "null" {
		return values, nil
	}
	return values, kjson.UnmarshalCaseSensitivePreserveInts(raw, &values)
}

// documents counts the non-empty documents of a file.
func documents(content []byte) int {
	count := 0
	for decoder := yamlv3.NewDecoder(bytes.NewReader(content)); ; {
		var document yamlv3.Node
		if decoder.Decode(&document) != nil {
			return count
		}
		if len(document.Content) == 1 && document.Content[0].Tag != "!!null" {
			count++
		}
	}
}

// Faults adds the errors of values to those of keys, so that all are reported at once (CFG-4). A key whose value
// could not be decoded is reported only once. err is nil, has the errors of keys, or is the error of reading the
// configuration.
func Faults(err error, values field.ErrorList) error {
	if err == nil {
		return values.ToAggregate()
	}
	var keys utilerrors.Aggregate
	if !errors.As(err, &keys) {
		return err
	}
	all := keys.Errors()
	for _, v := range values {
		if !slices.ContainsFunc(keys.Errors(), func(e error) bool { return concerns(e, v.Field) }) {
			all = append(all, v)
		}
	}
	return fmt.Errorf("error decoding config: %w", utilerrors.NewAggregate(all))
}

// concerns reports whether an error is for a path or one of its parents.
func concerns(err error, path string) bool {
	var wrong *field.Error
	if !errors.As(err, &wrong) {
		return false
	}
	rest, found := strings.CutPrefix(path, wrong.Field)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func checkKind(file map[string]any, format FileFormat) error {
	apiVersion, kind := format.APIVersion, format.Kind
	if v, found := file["apiVersion"]; found {
		apiVersion, _ = v.(string)
	}
	if v, found := file["kind"]; found {
		kind, _ = v.(string)
	}
	if apiVersion != format.APIVersion || kind != format.Kind {
		return fmt.Errorf("no kind %q is registered for version %q in scheme: want kind %q of version %q",
			kind, apiVersion, format.Kind, format.APIVersion)
	}
	return nil
}

// InClusterNamespace returns the namespace of the Pod in which the process runs, "" outside of a Pod (OPB-2).
func InClusterNamespace() string {
	content, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
