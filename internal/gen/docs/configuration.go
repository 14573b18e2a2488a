package main

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	admissioncontrollerconfig "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	nodeagentauthorizerconfig "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanagerconfig "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// configurations are the pages about the configuration of each executable, and about their shared part.
var configurations = map[string]func() string{
	"resource-manager-configuration":      configuration("resource-manager", resourcemanagerconfig.ResourceManagerConfiguration{}),
	"admission-controller-configuration":  configuration("admission-controller", admissioncontrollerconfig.AdmissionControllerConfiguration{}),
	"node-agent-authorizer-configuration": configuration("node-agent-authorizer", nodeagentauthorizerconfig.NodeAgentAuthorizerConfiguration{}),
	"shared-configuration":                sharedConfiguration,
}

// sharedSection is the type of a section that several executables have, and its heading on the page about these.
type sharedSection struct {
	of      documented
	heading string
}

var sharedSections = []sharedSection{
	{shared.ClientConnection{}, "Connections"},
	{shared.HTTPSServer{}, "Servers"},
	{shared.Server{}, ""}, // The first keys of an HTTPSServer.
	{shared.Debugging{}, "debugging"},
}

// sharedKeys are single keys that all executables have.
var sharedKeys = []string{"logLevel", "logFormat"}

// isShared reports whether the page about the shared part describes the type of a section.
func isShared(of reflect.Type) bool {
	return slices.ContainsFunc(sharedSections, func(s sharedSection) bool { return of == reflect.TypeOf(s.of) })
}

// connection has the comments of the keys of connections.
var connection = shared.ClientConnection{}.SwaggerDoc()

// documented is a type with SwaggerDoc, which fieldDocs writes.
type documented interface{ SwaggerDoc() map[string]string }

// docsOf returns the comments of the fields of a type by key.
func docsOf(of reflect.Type) map[string]string {
	if d, is := reflect.Zero(of).Interface().(documented); is {
		return d.SwaggerDoc()
	}
	return nil
}

// configuration returns the page of a type: a heading for each key.
func configuration(executable string, of documented) func() string {
	return func() string {
		p := &configPage{executable: executable, printed: map[reflect.Type]string{}, headings: true}
		fmt.Fprintf(&p.Builder, "# Configuration of %s\n\nGenerated from the types. A file starts with\n\n```yaml\napiVersion: %s.config.gardener.cloud/v1alpha1\nkind: %s\n```\n\n",
			executable, strings.ReplaceAll(executable, "-", ""), reflect.TypeOf(of).Name())
		p.WriteString("[The shared part](shared-configuration.md) has `logLevel`, `logFormat`, `debugging`, the keys of connections and servers, and the form of types and defaults.\n\n")
		t := reflect.TypeOf(of)
		p.section(t, "", false)
		p.flush()
		p.section(t, "", true)
		return strings.ReplaceAll(p.String(), "\n\n\n", "\n\n")
	}
}

// sharedConfiguration returns the page about the keys that several executables have.
func sharedConfiguration() string {
	p := &configPage{printed: map[reflect.Type]string{}}
	p.WriteString("# Shared configuration\n\nGenerated from the types of several executables.\nOn all pages a key without a type is a string or a section, and a boolean without a default is false; other defaults below `enabled` hold once that is true.\n\n")
	docs := docsOf(reflect.TypeFor[resourcemanagerconfig.ResourceManagerConfiguration]())
	for _, key := range sharedKeys {
		p.item(key, reflect.TypeFor[string](), docs[key])
	}
	p.flush()
	for _, s := range sharedSections {
		if s.heading == "" {
			continue
		}
		fmt.Fprintf(&p.Builder, "\n## %s\n\n", s.heading)
		path := ""
		if unicode.IsLower(rune(s.heading[0])) {
			path = s.heading + "."
		}
		p.section(reflect.TypeOf(s.of), path, false)
		p.flush()
	}
	return strings.ReplaceAll(p.String(), "\n\n\n", "\n\n")
}

type configPage struct {
	strings.Builder
	executable string
	items      []listItem
	// printed are the keys under which the section of a type was already printed.
	printed map[reflect.Type]string
	// switches are the keys that switch on a feature, in the section that is being written.
	switches []string
	// headings prints a heading for each top-level section, and leaves out the keys of the shared page.
	headings bool
}

// section writes the keys of a type. On top, where path is empty, it writes either the sections or the other keys.
func (p *configPage) section(of reflect.Type, path string, sections bool) {
	docs := docsOf(of)
	var same []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch element, _ := elementOf(field.Type); {
		case name == "" && field.Type.PkgPath() == of.PkgPath():
			p.section(field.Type, path, sections)
		case name == "", name == "enabled" && switches.MatchString(docs[name]):
		case p.headings && path == "" && (isSection(element) != sections || slices.Contains(sharedKeys, name)):
		case strings.HasSuffix(path, "ClientConnection.") && docs[name] == connection[name]:
			same = append(same, "`"+name+"`")
		default:
			p.key(path+name, field.Type, withoutSubject(field.Name, docs[name]))
		}
	}
	if len(same) > 0 {
		p.items = append(p.items, listItem{strings.Join(same, ", "), ": [shared](shared-configuration.md#connections)"})
	}
}

// elementOf returns the type of a key's value, or of the elements of its list, and the path of the keys below it.
func elementOf(of reflect.Type) (element reflect.Type, below string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() == reflect.Slice {
		return of.Elem(), "[]."
	}
	return of, "."
}

// isSection reports whether a type has keys of its own.
func isSection(of reflect.Type) bool {
	return of.Kind() == reflect.Struct && strings.Contains(of.PkgPath(), "/api/config/")
}

func (p *configPage) key(key string, of reflect.Type, text string) {
	element, below := elementOf(of)
	if !isSection(element) {
		p.item(key, of, text)
		return
	}
	top := p.headings && !strings.Contains(key, ".")
	if top && element == reflect.TypeFor[shared.Debugging]() {
		return
	}
	configures := strings.HasPrefix(text, "Configures ")
	earlier := p.printed[element]
	switch {
	case switched(element):
		p.switches = append(p.switches, "`"+key+".enabled`")
	case top:
		fmt.Fprintf(&p.Builder, "\n## %s\n\n", key)
		if !configures {
			fmt.Fprintf(&p.Builder, "%s\n\n", shown(text))
		}
	case earlier != "":
		p.item(key, nil, fmt.Sprintf("%s Keys as below `%s`.", text, earlier))
		return
	case !configures:
		p.item(key, nil, text)
	}
	if isShared(element) {
		return
	}
	if element == reflect.TypeFor[resourcemanagerconfig.NodeAgentAuthorizerWebhookConfig]() {
		p.agents(key, element)
		return
	}
	if !switched(element) && element.NumField() > 1 {
		p.printed[element] = key
	}
	p.section(element, key+below, false)
	if !top {
		return
	}
	p.flush()
	if len(p.switches) > 0 {
		fmt.Fprintf(&p.Builder, "\nSwitches (boolean) of [features](%s-features.md): %s.\n", p.executable, strings.Join(p.switches, ", "))
		p.switches = nil
	}
}

// agents writes the keys of node-agent-authorizer in the configuration of resource-manager.
func (p *configPage) agents(key string, of reflect.Type) {
	var names []string
	for i := range of.NumField() {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "enabled" {
			names = append(names, name)
		}
	}
	keys := "`" + key + "." + strings.Join(names, "`, `"+key+".") + "`"
	p.items = append(p.items, listItem{keys, ": as in [node-agent-authorizer](node-agent-authorizer-configuration.md), without the value Auto"})
}

// item writes a key with its type, unless that is nil, and its text.
func (p *configPage) item(key string, of reflect.Type, text string) {
	typed := ""
	if of != nil {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.String {
			typed = " (" + typeName(of) + ")"
		}
		if of.Kind() == reflect.Bool {
			text = strings.TrimSuffix(text, " Default false.")
		}
	}
	text = defaultWhenEnabled.ReplaceAllString(text, "$1.")
	rest := fmt.Sprintf("%s: %s", typed, shown(text))
	if i := slices.IndexFunc(p.items, func(i listItem) bool { return i.rest == rest }); i >= 0 {
		p.items[i].keys += ", `" + key + "`"
		return
	}
	p.items = append(p.items, listItem{"`" + key + "`", rest})
}

// listItem has keys that share their type and text.
type listItem struct{ keys, rest string }

// flush writes a heading for each key, and below it type and text; keys with the same type and text share these.
func (p *configPage) flush() {
	for _, i := range p.items {
		for key := range strings.SplitSeq(i.keys, ", ") {
			fmt.Fprintf(&p.Builder, "\n### %s\n", key)
		}
		fmt.Fprintf(&p.Builder, "\n%s\n", strings.Replace(strings.TrimLeft(i.rest, ": "), "): ", ") ", 1))
	}
	p.items = nil
}

// shown returns a text as Markdown.
func shown(text string) string { return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text) }

// defaultWhenEnabled is a default of a section that can be switched on.
var defaultWhenEnabled = regexp.MustCompile(`( Default [^.]*) when enabled\.`)

// switches matches the comment of a switch. The comment of its section describes it instead.
var switches = regexp.MustCompile(`^Enabled switches the (controller|webhook) on\. Default false\.$`)

// switched reports whether a type, or one that it embeds, has such a switch.
func switched(of reflect.Type) bool {
	if switches.MatchString(docsOf(of)["enabled"]) {
		return true
	}
	for i := range of.NumField() {
		if field := of.Field(i); field.Anonymous && field.Type.PkgPath() == of.PkgPath() && switched(field.Type) {
			return true
		}
	}
	return false
}

// noun and verb match the text of a comment after the name of its field.
var (
	noun = regexp.MustCompile(`^(?:is|are) (?:the|a|an) `)
	verb = regexp.MustCompile(`^[a-z]*[^i]s `)
)

// withoutSubject removes the name of the field from the beginning of a comment, if the rest can stand alone.
func withoutSubject(name, text string) string {
	rest, found := strings.CutPrefix(text, name+" ")
	if !found || !noun.MatchString(rest) && !verb.MatchString(rest) {
		return text
	}
	rest = noun.ReplaceAllString(rest, "")
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// typeName returns the name of a type in YAML.
func typeName(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Slice:
		return "list of " + typeName(of.Elem())
	case reflect.Map:
		return "map of " + typeName(of.Elem())
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	}
	return strings.ToLower(of.Name())
}
