package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// RegisterMetrics registers the metrics of a process beside those of the libraries.
func RegisterMetrics(registry prometheus.Registerer) { tellUnknownKeys(registry, 0) }

// tellUnknownKeys has a metric say how many keys were not known when a configuration file was read last.
func tellUnknownKeys(registry prometheus.Registerer, n int) {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "espalier_config_unknown_keys",
		Help: "Keys of the configuration file that this version does not know.",
	})
	known := prometheus.AlreadyRegisteredError{}
	if err := registry.Register(gauge); errors.As(err, &known) {
		gauge = known.ExistingCollector.(prometheus.Gauge)
	}
	gauge.Set(float64(n))
}

// FromEnvironment replaces the path of a kubeconfig by that of an environment variable, if it is set (CLI-20, CLI-21).
func FromEnvironment(kubeconfig *string, variable string) {
	if path := os.Getenv(variable); path != "" {
		*kubeconfig = path
	}
}

// FileFormat is what a configuration file may be.
type FileFormat struct {
	APIVersion, Kind string
	Aliases          []shared.Alias
	// Strict makes an unknown key an error.
	Strict bool
	// Printed are keys by the name under which errors print them, where that is another one.
	Printed map[string]string
}

// ConfigFlags are the flags that lead to a configuration file.
type ConfigFlags struct {
	File   string
	Strict bool
}

// Add adds the flags.
func (f *ConfigFlags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.File, "config", "", "path of the configuration file")
	flags.BoolVar(&f.Strict, "strict-config", false, "take unknown keys of the configuration file for errors, not for warnings")
}

// ErrNoConfig says that no configuration file is given (CLI-5).
var ErrNoConfig = errors.New("missing config file")

// Content reads the file.
func (f *ConfigFlags) Content() ([]byte, error) {
	if f.File == "" {
		return nil, ErrNoConfig
	}
	content, err := os.ReadFile(f.File)
	if err != nil {
		return nil, fmt.Errorf("error reading config file: %w", err)
	}
	return content, nil
}

// Read reads the file into object and returns warnings, as DecodeConfig.
func (f *ConfigFlags) Read(format FileFormat, object any) ([]shared.Warning, error) {
	content, err := f.Content()
	if err != nil {
		return nil, err
	}
	format.Strict = f.Strict
	warnings, err := DecodeConfig(content, format, object)
	if err != nil {
		return warnings, fmt.Errorf("error decoding config: %w", err)
	}
	return warnings, nil
}

// DecodeConfig decodes a configuration file into object (CFG-1 … CFG-6). It returns warnings about older keys and unknown ones (OPB-1), also
// with an error. That is an aggregate of all keys that are wrong, each with its path, unless the content is no YAML or of another kind.
func DecodeConfig(content []byte, format FileFormat, object any) ([]shared.Warning, error) {
	raw, err := yaml.YAMLToJSON(content)
	if err != nil {
		return nil, err
	}
	file := map[string]any{}
	if string(raw) != "null" {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &file); err != nil {
			return nil, err
		}
	}
	if err := checkKind(file, format); err != nil {
		return nil, err
	}
	warnings, errs := shared.ResolveAliases(file, format.Aliases)
	checked := checkTypes(file, reflect.TypeOf(object))
	errs = append(errs, checked.wrong...)
	for _, path := range checked.unknown {
		warnings = append(warnings, shared.Warning{Path: path, Text: fmt.Sprintf("unknown key %s is ignored", path), Unknown: true})
		if format.Strict {
			errs = append(errs, field.Forbidden(field.NewPath(path), "unknown key"))
		}
	}
	tellUnknownKeys(metrics.Registry, len(checked.unknown))
	if err := errs.ToAggregate(); err != nil {
		return warnings, err
	}
	if raw, err = json.Marshal(file); err != nil {
		return warnings, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, object); err != nil {
		return warnings, err
	}
	// A file without a kind is shown with it.
	if typed, ok := object.(interface{ GetObjectKind() schema.ObjectKind }); ok {
		typed.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(format.APIVersion, format.Kind))
	}
	return warnings, nil
}

// kindError says that a file is of another kind or version, and which key does.
type kindError struct{ key, text string }

func (e *kindError) Error() string { return e.text }

func checkKind(file map[string]any, format FileFormat) error {
	apiVersion, kind := format.APIVersion, format.Kind
	if v, found := file["apiVersion"]; found {
		apiVersion, _ = v.(string)
	}
	if v, found := file["kind"]; found {
		kind, _ = v.(string)
	}
	wrong := "kind"
	if apiVersion != format.APIVersion {
		wrong = "apiVersion"
	}
	if apiVersion != format.APIVersion || kind != format.Kind {
		return &kindError{key: wrong, text: fmt.Sprintf("no kind %q is registered for version %q in scheme: want kind %q of version %q", kind, apiVersion, format.Kind, format.APIVersion)}
	}
	return nil
}

// InClusterNamespace is the namespace of the Pod that the process runs in, "" outside of one (OPB-2).
func InClusterNamespace() string {
	content, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
