package main

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	admissioncontrollerconfig "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	nodeagentauthorizerconfig "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanagerconfig "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
)

// configurations are the pages about the configuration of each executable.
var configurations = map[string]func() string{
	"resource-manager-configuration":      configuration("resource-manager", resourcemanagerconfig.ResourceManagerConfiguration{}),
	"admission-controller-configuration":  configuration("admission-controller", admissioncontrollerconfig.AdmissionControllerConfiguration{}),
	"node-agent-authorizer-configuration": configuration("node-agent-authorizer", nodeagentauthorizerconfig.NodeAgentAuthorizerConfiguration{}),
}

// documented is a type with SwaggerDoc, which fieldDocs writes.
type documented interface{ SwaggerDoc() map[string]string }

// configuration returns the page of a type: a heading for each key.
func configuration(executable string, of documented) func() string {
	return func() string {
		p := &configPage{printed: map[reflect.Type]string{}}
		fmt.Fprintf(&p.Builder, "# Configuration of %s\n\nGenerated from the types; `make generate` updates it. A file starts with\n\n```yaml\napiVersion: %s.config.gardener.cloud/v1alpha1\nkind: %s\n```\n",
			executable, strings.ReplaceAll(executable, "-", ""), reflect.TypeOf(of).Name())
		p.section(reflect.TypeOf(of), "")
		return p.String()
	}
}

type configPage struct {
	strings.Builder
	// printed are the keys under which sections of a type stand already.
	printed map[reflect.Type]string
}

func (p *configPage) section(of reflect.Type, path string) {
	docs := map[string]string{}
	if d, is := reflect.Zero(of).Interface().(documented); is {
		docs = d.SwaggerDoc()
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			if field.Type.PkgPath() == of.PkgPath() {
				p.section(field.Type, path)
			}
			continue
		}
		if name != "enabled" || !switches.MatchString(docs[name]) {
			p.key(path+name, field.Type, withoutSubject(field.Name, docs[name]))
		}
	}
}

func (p *configPage) key(key string, of reflect.Type, text string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	element, below := of, key+"."
	if of.Kind() == reflect.Slice {
		element, below = of.Elem(), key+"[]."
	}
	isSection := element.Kind() == reflect.Struct && strings.Contains(element.PkgPath(), "/api/config/")
	shown := strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text)
	if !isSection {
		fmt.Fprintf(&p.Builder, "\n### %s\n\n%s. %s\n", key, typeName(of), shown)
		return
	}
	if switched(element) {
		shown += " `enabled` switches it on."
	}
	fmt.Fprintf(&p.Builder, "\n## %s\n\n%s\n", key, shown)
	if earlier := p.printed[element]; earlier != "" {
		fmt.Fprintf(&p.Builder, "\nThe keys are those of [%s](#%s).\n", earlier, strings.ToLower(strings.NewReplacer(".", "", "[]", "").Replace(earlier)))
		return
	}
	if element.NumField() > 1 {
		p.printed[element] = key
	}
	p.section(element, below)
}

// switches is the comment of a switch that the section of the switch describes in its place.
var switches = regexp.MustCompile(`^Enabled switches the (controller|webhook) on\. Default false\.$`)

// switched reports whether a type, or one that it embeds, has such a switch.
func switched(of reflect.Type) bool {
	if d, is := reflect.Zero(of).Interface().(documented); is && switches.MatchString(d.SwaggerDoc()["enabled"]) {
		return true
	}
	for i := range of.NumField() {
		if field := of.Field(i); field.Anonymous && field.Type.PkgPath() == of.PkgPath() && switched(field.Type) {
			return true
		}
	}
	return false
}

// noun and verb are how a comment goes on after the name of its field.
var (
	noun = regexp.MustCompile(`^(?:is|are) (the|a|an) `)
	verb = regexp.MustCompile(`^[a-z]*[^i]s `)
)

// withoutSubject returns a comment without the name of its field at the beginning, where it reads well without it.
func withoutSubject(name, text string) string {
	rest, found := strings.CutPrefix(text, name+" ")
	if !found || !noun.MatchString(rest) && !verb.MatchString(rest) {
		return text
	}
	rest = noun.ReplaceAllString(rest, "$1 ")
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// typeName returns the name of a type in YAML.
func typeName(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Slice:
		return "List of " + strings.ToLower(typeName(of.Elem()))
	case reflect.Map:
		return "Map of " + strings.ToLower(typeName(of.Elem()))
	case reflect.Bool:
		return "Boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "Integer"
	case reflect.Float32, reflect.Float64:
		return "Number"
	case reflect.String:
		return "String"
	}
	return of.Name()
}
