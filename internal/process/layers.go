package process

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultsFile is the defaults file if --defaults has no other one. It may be missing; images have one.
const DefaultsFile = "/etc/espalier/defaults.yaml"

// profileKey is the key of the profile in a defaults file.
const profileKey = "profile"

// defaultProfile is the profile of an executable if neither --profile nor a defaults file has one.
const defaultProfile = "contract"

// valuesBelow returns the values of the profile, overridden by those of the defaults file, under their present keys.
func (f *ConfigFlags) valuesBelow(format FileFormat) (map[string]any, []string, error) {
	path, err := f.defaultsPath()
	if err != nil {
		return nil, nil, err
	}
	var defaults map[string]any
	var warnings []string
	chosen := f.Profile
	if path != "" {
		if defaults, warnings, err = readDefaults(path, format, &chosen); err != nil {
			return nil, nil, fmt.Errorf("error reading defaults file %s: %w", path, err)
		}
	}
	if chosen == "" {
		chosen = defaultProfile
	}
	text, found := format.Profiles[chosen]
	if !found && chosen != defaultProfile {
		known := slices.Sorted(maps.Keys(format.Profiles))
		return nil, nil, field.NotSupported(field.NewPath(profileKey), chosen, slices.Compact(slices.Sorted(slices.Values(append(known, defaultProfile)))))
	}
	values, err := decodeMap([]byte(text))
	if err != nil {
		return nil, nil, fmt.Errorf("profile %s: %w", chosen, err)
	}
	return merged(values, defaults), warnings, nil
}

// defaultsPath returns the path of the defaults file, "" if there is none. The file in --defaults must exist.
func (f *ConfigFlags) defaultsPath() (string, error) {
	if f.Defaults != "" {
		return f.Defaults, nil
	}
	switch _, err := os.Stat(DefaultsFile); {
	case err == nil:
		return DefaultsFile, nil
	case os.IsNotExist(err):
		return "", nil
	default:
		return "", fmt.Errorf("error reading defaults file: %w", err)
	}
}

// readDefaults reads a defaults file, and takes the profile from it unless one is already set. Errors have the path
// of the file.
func readDefaults(path string, format FileFormat, profile *string) (map[string]any, []string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	values, err := decodeMap(content)
	if err != nil {
		return nil, nil, err
	}
	if value, found := values[profileKey]; found {
		text, ok := value.(string)
		if !ok {
			return nil, nil, field.TypeInvalid(field.NewPath(profileKey), value, "must be a string")
		}
		if *profile == "" {
			*profile = text
		}
		delete(values, profileKey)
	}
	warnings, errs, err := resolve(values, format)
	if err != nil {
		return nil, nil, err
	}
	for i := range warnings {
		warnings[i] = path + ": " + warnings[i]
	}
	delete(values, "apiVersion")
	delete(values, "kind")
	return values, warnings, errs.ToAggregate()
}

// merged returns below overridden by above: maps are merged, lists and scalars replaced. Neither is changed; null
// counts as absent.
func merged(below, above map[string]any) map[string]any {
	result := map[string]any{}
	maps.Copy(result, below)
	for key, value := range above {
		lower, isMap := result[key].(map[string]any)
		upper, isMapToo := value.(map[string]any)
		switch {
		case isMap && isMapToo:
			result[key] = merged(lower, upper)
		case value != nil || result[key] == nil:
			result[key] = value
		}
	}
	return result
}
