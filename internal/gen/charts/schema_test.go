package main

import (
	"go/ast"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// sections are of all kinds of fields that configurations have.
type sections struct {
	metav1.TypeMeta `json:",inline"`
	Level           string            `json:"level"`
	Port            int32             `json:"port"`
	Rate            float32           `json:"rate"`
	Period          *metav1.Duration  `json:"period,omitempty"`
	Size            resource.Quantity `json:"size"`
	On              *bool             `json:"on,omitempty"`
	Names           []string          `json:"names"`
	Labels          map[string]string `json:"labels"`
	Below           struct {
		Port int `json:"port"`
	} `json:"below"`
}

type object = map[string]any

// of is a comment of a field, as a file has it.
func of(lines ...string) comment {
	group := &ast.CommentGroup{}
	for _, line := range lines {
		group.List = append(group.List, &ast.Comment{Text: "// " + line})
	}
	return parse(group)
}

func TestSchemaOf(t *testing.T) {
	const path = module + "internal/gen/charts.sections."
	all := comments{path + "Level": of("Level of the log.", "+kubebuilder:validation:Enum=debug;info"), path + "Port": of("+kubebuilder:validation:Minimum=0", "+kubebuilder:validation:Maximum=65535", "+optional")}
	got, err := schemaOf(reflect.TypeFor[sections](), all)
	must.Succeed(t, err)
	text := object{"type": "string"}
	want := object{"type": "object", "additionalProperties": false, "properties": object{
		"apiVersion": text, "kind": text,
		"level": object{"type": "string", "description": "Level of the log.", "enum": []any{"debug", "info", ""}}, "port": object{"type": "integer", "minimum": 0, "maximum": 65535},
		"rate": object{"type": "number"}, "period": object{"type": "string", "pattern": duration}, "size": object{"type": []any{"string", "number"}}, "on": object{"type": "boolean"},
		"names": object{"type": "array", "items": text}, "labels": object{"type": "object", "additionalProperties": text},
		"below": object{"type": "object", "additionalProperties": false, "properties": object{"port": object{"type": "integer"}}},
	}}
	expect.DeepEqual(t, got, want)
	for name, bad := range map[string]struct {
		comments comments
		typed    reflect.Type
		want     string
	}{
		"an unknown marker":     {comments{path + "Port": of("+kubebuilder:validation:MultipleOf=2")}, reflect.TypeFor[sections](), "sections.Port: schemas know no marker MultipleOf"},
		"a limit that is none":  {comments{path + "Port": of("+kubebuilder:validation:Minimum=x")}, reflect.TypeFor[sections](), `sections.Port: strconv.Atoi: parsing "x"`},
		"a field of a function": {nil, reflect.TypeFor[struct{ F func() }](), "no schema for func()"},
	} {
		expect.ErrorContains(t, expect.ErrorOf(schemaOf(bad.typed, bad.comments)), bad.want, "%s", name)
	}
}

// TestDuration: the pattern is that of Go's durations (CFG-6).
func TestDuration(t *testing.T) {
	pattern := regexp.MustCompile(duration)
	for text, want := range map[string]bool{"1h": true, "1h30m": true, "1.5s": true, "-1s": true, ".5s": true, "10µs": true, "": false, "1": false, "soon": false, "1d": false, "1h ": false} {
		expect.Equal(t, pattern.MatchString(text), want, "%q: %v", text, !want)
	}
}

// TestGraft: older keys are beside the newer ones, in sections that are there.
func TestGraft(t *testing.T) {
	whole := object{"properties": object{"a": object{"properties": object{"b": object{"type": "integer"}}}}}
	b, err := section(whole, "a.b")
	must.Succeed(t, err)
	for _, path := range []string{"old", "a.old"} {
		must.Succeed(t, graft(whole, path, b))
		if got, err := section(whole, path); err != nil || got["type"] != "integer" {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
	}
	for _, path := range []string{"c.old", "a.b.old.older"} {
		expect.ErrorContains(t, graft(whole, path, b), "the configuration has no "+path[:strings.LastIndex(path, ".")],
			"%s", path)
	}
}

// TestNeeded: what a null must not take away.
func TestNeeded(t *testing.T) {
	schema := object{"properties": object{
		"image": object{"properties": object{"repository": object{}, "tag": object{}}}, "labels": object{"$ref": "texts"}, "subject": object{"required": []any{"name"}, "properties": object{"name": object{}, "namespace": object{}}},
		"resources": object{"properties": object{"requests": object{"$ref": "quantities"}}}, "config": object{"properties": object{"level": object{}}},
	}}
	defaults := object{
		"image": object{"repository": "r", "tag": ""}, "replicaCount": 2, "on": false, "labels": object{}, "podLabels": object{"a": "b"}, "subject": object{"name": "n", "namespace": "m"}, "list": []any{"x"},
		"resources": object{"requests": object{"cpu": "1"}}, "config": object{"level": "info"},
	}
	want := []string{"config", "image", "image.repository", "on", "podLabels", "replicaCount", "resources", "resources.requests", "resources.requests.cpu", "resources.requests.memory", "subject"}
	expect.DeepEqual(t, needed(schema, defaults, ""), want)
}

// TestComments: text and markers of the fields of the configurations, which are where they are looked for.
func TestComments(t *testing.T) {
	all, err := readComments("../../..")
	must.Succeed(t, err)
	level := all[module+"api/config/resourcemanager/v1alpha1.ResourceManagerConfiguration.LogLevel"]
	expect.True(t, level.text != "" && !strings.Contains(level.text, "+kubebuilder") && level.markers["Enum"] != "",
		"got %+v", level)
	expect.ErrorContains(t, expect.ErrorOf(readComments(t.TempDir())), "there are no configurations in")
}
