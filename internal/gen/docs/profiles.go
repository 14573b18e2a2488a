package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	admissioncontroller "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	nodeagentauthorizer "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanager "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
)

// tree is a configuration, or a section of it.
type tree = map[string]any

// profiles returns the page about the profiles of all executables.
func profiles() string {
	var out strings.Builder
	out.WriteString(`# Profiles

Generated from the profiles of the configuration types.

A profile is a set of defaults below the defaults file and the configuration.
` + "`contract`" + ` has the defaults of the reference pages, and is the default of a bare executable; ` + "`gardener`" + ` is the default of the images.
They differ in these keys, of ResourceManagerConfiguration unless another kind follows; ` + "`validate-config --effective`" + ` prints the result.
[The contract](../internals/contract/README.md#decisions-about-profiles-and-hostile-clients) says what was decided by profile.

| key | ` + "`contract`" + ` | ` + "`gardener`" + ` |
|---|---|---|
`)
	writeProfile(&out, resourcemanager.Kind, resourcemanager.Profiles, resourcemanager.SetDefaults)
	writeProfile(&out, admissioncontroller.Kind, admissioncontroller.Profiles, admissioncontroller.SetDefaults)
	writeProfile(&out, nodeagentauthorizer.Kind, nodeagentauthorizer.Profiles, nodeagentauthorizer.SetDefaults)
	return out.String()
}

// writeProfile writes the rows of an executable. Profile contract sets nothing, so that its values are the built-in
// defaults.
func writeProfile[T any](out *strings.Builder, kind string, profiles map[string]string, setDefaults func(*T)) {
	if profiles["contract"] != "" {
		panic("profile contract of " + kind + " sets something")
	}
	gardener := decoded[tree](profiles["gardener"])
	if len(gardener) == 0 {
		fmt.Fprintf(out, "\n%s has the same in both.\n", kind)
		return
	}
	config := decoded[T](encoded(switchedOn(gardener)))
	setDefaults(&config)
	writeKeys(out, kind, "", decoded[tree](encoded(config)), gardener)
}

// switchedOn switches on all sections in which a profile has keys, because many defaults are set only in sections
// that are enabled.
func switchedOn(section tree) tree {
	result := tree{"enabled": true}
	for key, value := range section {
		if below, ok := value.(tree); ok {
			result[key] = switchedOn(below)
		}
	}
	return result
}

func writeKeys(out *strings.Builder, kind, path string, contract, gardener tree) {
	for _, key := range slices.Sorted(maps.Keys(gardener)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		if below, ok := gardener[key].(tree); ok {
			writeKeys(out, kind, at, contract[key].(tree), below)
			continue
		}
		if contract[key] == nil || contract[key] == gardener[key] {
			panic(fmt.Sprintf("%s of %s is %v under profile contract", at, kind, contract[key]))
		}
		of := ""
		if kind != resourcemanager.Kind {
			of = " of " + kind
		}
		fmt.Fprintf(out, "| `%s`%s | `%v` | `%v` |\n", at, of, contract[key], gardener[key])
	}
}

func encoded(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func decoded[T any](text string) T {
	var value T
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	return value
}
