package main

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	nodeagentauthorizer "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
)

var (
	typeMeta      = reflect.TypeFor[metav1.TypeMeta]()
	durationType  = reflect.TypeFor[metav1.Duration]()
	quantityType  = reflect.TypeFor[resource.Quantity]()
	selectorsType = reflect.TypeFor[nodeagentauthorizer.Selectors]()
)

// duration matches Go's durations.
const duration = `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// schema returns the schema of a chart's values: the values of all charts, the additional values of this chart, and the configuration.
func (e *executable) schema(comments comments) (map[string]any, error) {
	whole, own := map[string]any{}, map[string]any{}
	for name, into := range map[string]*map[string]any{"common": &whole, e.Executable: &own} {
		content, err := shared.ReadFile("schemas/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(content, into); err != nil {
			return nil, err
		}
	}
	properties, _ := whole["properties"].(map[string]any)
	for key, value := range own {
		properties[key] = value
	}
	connections := map[string]any{}
	for _, c := range e.Connections {
		connections[string(c.Cluster)] = map[string]any{"$ref": "#/definitions/kubeconfig"}
	}
	properties["kubeconfigs"] = map[string]any{"type": "object", "additionalProperties": false, "properties": connections}
	configuration, err := schemaOf(e.config, comments)
	if err != nil {
		return nil, err
	}
	fields, _ := configuration["properties"].(map[string]any)
	for _, key := range []string{"apiVersion", "kind"} {
		fields[key] = map[string]any{"const": e.Config[key]}
	}
	for _, a := range e.Aliases {
		at, err := section(configuration, a.New)
		if err != nil {
			return nil, err
		}
		if err := graft(configuration, a.Old, at); err != nil {
			return nil, err
		}
	}
	for _, dropped := range e.dropped {
		if err := graft(configuration, dropped.Old, map[string]any{"description": "Has no effect: " + dropped.Dropped + "."}); err != nil {
			return nil, err
		}
	}
	configuration["description"] = "Configuration of the executable."
	properties["config"] = configuration
	return whole, nil
}

// needed returns the paths of the values that templates rely on: those with a default, except lists and empty values.
// It includes the keys of a section unless the schema declares its required keys. The schema does not require these
// values, because the files of users have only a few; but a user cannot remove them with a null.
func needed(schema, defaults map[string]any, path string) []string {
	properties, _ := schema["properties"].(map[string]any)
	var all []string
	for _, key := range sorted(defaults) {
		below := strings.TrimPrefix(path+"."+key, ".")
		section, isSection := defaults[key].(map[string]any)
		if _, isList := defaults[key].([]any); isList || isSection && len(section) == 0 || defaults[key] == "" {
			continue
		}
		all = append(all, below)
		described, _ := properties[key].(map[string]any)
		switch {
		case below == "config": // The executable sets its own defaults.
		case isSection && described["properties"] != nil && described["required"] == nil:
			all = append(all, needed(described, section, below)...)
		case below == "resources.requests":
			all = append(all, below+".cpu", below+".memory")
		}
	}
	return all
}

// section returns the schema at a path of another schema.
func section(schema map[string]any, path string) (map[string]any, error) {
	for _, key := range strings.Split(path, ".") {
		properties, _ := schema["properties"].(map[string]any)
		next, ok := properties[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the configuration has no %s", path)
		}
		schema = next
	}
	return schema, nil
}

// graft adds a schema at a path whose sections exist.
func graft(schema map[string]any, path string, what map[string]any) error {
	parent, key := "", path
	if i := strings.LastIndex(path, "."); i >= 0 {
		parent, key = path[:i], path[i+1:]
		var err error
		if schema, err = section(schema, parent); err != nil {
			return err
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	properties[key] = what
	return nil
}

// schemaOf returns the schema of a type's JSON. Unknown fields are refused, so that the user who installs a chart
// gets an error.
func schemaOf(t reflect.Type, comments comments) (map[string]any, error) {
	switch t {
	case durationType:
		return map[string]any{"type": "string", "pattern": duration}, nil
	case quantityType:
		return map[string]any{"type": []any{"string", "number"}}, nil
	case selectorsType:
		return map[string]any{"enum": []any{true, false, "true", "false", "Auto", ""}}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Pointer:
		return schemaOf(t.Elem(), comments)
	case reflect.Slice:
		items, err := schemaOf(t.Elem(), comments)
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := schemaOf(t.Elem(), comments)
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		properties := map[string]any{}
		err := addFields(properties, t, comments)
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}, err
	}
	return nil, fmt.Errorf("no schema for %s", t)
}

func addFields(properties map[string]any, t reflect.Type, comments comments) error {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			if err := addFields(properties, field.Type, comments); err != nil {
				return err
			}
			continue
		}
		schema, err := schemaOf(field.Type, comments)
		if err == nil {
			err = comments.of(t, field).add(schema)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t.Name(), field.Name, err)
		}
		properties[name] = schema
	}
	return nil
}
