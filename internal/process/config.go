package process

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

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

// FileFormat is what a configuration file may be.
type FileFormat struct {
	APIVersion, Kind string
	Aliases          []shared.Alias
	// Strict makes an unknown key an error.
	Strict bool
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

// Read reads the file into object and returns warnings, as ReadConfig.
func (f *ConfigFlags) Read(format FileFormat, object any) ([]string, error) {
	if f.File == "" {
		return nil, ErrNoConfig
	}
	format.Strict = f.Strict
	return ReadConfig(f.File, format, object)
}

// ReadConfig reads a configuration file into object and returns warnings about older keys (CFG-1 … CFG-6) and
// unknown ones (OPB-1).
func ReadConfig(path string, format FileFormat, object any) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("error reading config file: %w", err)
	}
	warnings, err := DecodeConfig(content, format, object)
	if err != nil {
		return nil, fmt.Errorf("error decoding config: %w", err)
	}
	return warnings, nil
}

// DecodeConfig is ReadConfig for content that is already there.
func DecodeConfig(content []byte, format FileFormat, object any) ([]string, error) {
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
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	if raw, err = yaml.Marshal(file); err != nil {
		return nil, err
	}
	if raw, err = yaml.YAMLToJSON(raw); err != nil {
		return nil, err
	}
	unknown, err := kjson.UnmarshalStrict(raw, object)
	if err != nil {
		return nil, err
	}
	return append(warnings, unknownKeyWarnings(unknown)...), strictError(unknown, format.Strict)
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
		return fmt.Errorf("no kind %q is registered for version %q in scheme: want kind %q of version %q", kind, apiVersion, format.Kind, format.APIVersion)
	}
	return nil
}

var quotedPath = regexp.MustCompile(`"([^"]*)"`)

func unknownKeyWarnings(unknown []error) []string {
	warnings := make([]string, 0, len(unknown))
	for _, err := range unknown {
		path := err.Error()
		if match := quotedPath.FindStringSubmatch(path); match != nil {
			path = match[1]
		}
		warnings = append(warnings, fmt.Sprintf("unknown key %s is ignored", path))
	}
	slices.Sort(warnings)
	tellUnknownKeys(metrics.Registry, len(unknown))
	return warnings
}

func strictError(unknown []error, strict bool) error {
	if !strict || len(unknown) == 0 {
		return nil
	}
	var errs field.ErrorList
	for _, err := range unknown {
		path := err.Error()
		if match := quotedPath.FindStringSubmatch(path); match != nil {
			path = match[1]
		}
		errs = append(errs, field.Forbidden(field.NewPath(strings.TrimPrefix(path, ".")), "unknown key"))
	}
	return errs.ToAggregate()
}

// InClusterNamespace is the namespace of the Pod that the process runs in, "" outside of one (OPB-2).
func InClusterNamespace() string {
	content, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
