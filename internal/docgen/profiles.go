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

// profiles is the page about the profiles of all executables.
func profiles() string {
	var out strings.Builder
	out.WriteString(`# Profiles

Generated from the profiles of the configuration types; ` + "`make generate`" + ` writes it anew.

A profile is a set of defaults below the defaults file and the configuration.
` + "`contract`" + ` has the defaults of the reference pages and is what a bare executable follows; ` + "`gardener`" + ` is what the images follow.
The table has the keys in which ` + "`gardener`" + ` differs; ` + "`validate-config --effective`" + ` prints where each value comes from.

| executable | key | under ` + "`gardener`" + ` |
|---|---|---|
`)
	for _, x := range []struct {
		name     string
		profiles map[string]string
	}{
		{resourcemanager.Kind, resourcemanager.Profiles}, {admissioncontroller.Kind, admissioncontroller.Profiles}, {nodeagentauthorizer.Kind, nodeagentauthorizer.Profiles},
	} {
		values := map[string]any{}
		if err := yaml.Unmarshal([]byte(x.profiles["gardener"]), &values); err != nil {
			panic(fmt.Sprintf("profile gardener of %s: %v", x.name, err))
		}
		writeKeys(&out, x.name, "", values)
		if len(values) == 0 {
			fmt.Fprintf(&out, "| %s | | the same |\n", x.name)
		}
	}
	return out.String()
}

func writeKeys(out *strings.Builder, name, path string, values map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		if section, ok := values[key].(map[string]any); ok {
			writeKeys(out, name, at, section)
			continue
		}
		fmt.Fprintf(out, "| %s | `%s` | `%v` |\n", name, at, values[key])
	}
}
