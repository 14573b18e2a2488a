package simulation

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/fake"
)

type object = fake.Object

// thing is an object that Secrets may have: where it is, and how a value is put into it. A value is a small number, so that
// values come back.
type thing struct {
	name     string
	resource schema.GroupResource
	// namespaced is left open for a kind whose scope changes.
	namespaced bool
	// make returns the object with a value.
	make func(value int) object
	// value reads it back, "" if it can't be told.
	value func(object) string
	// kind and objectName are those of all objects that make returns, texts what Secrets have for them, by value, and values and modes
	// what they say, by text.
	kind, objectName string
	texts            []string
	values           map[string]string
	modes            map[string]int
	// custom is the CustomResourceDefinition that must be there first, "" for none.
	custom string
}

const targetNamespace = "default"

func valueAt(path ...string) func(object) string {
	return func(o object) string { return fake.Text(o, path...) }
}

func manifest(apiVersion, kind, name string, rest object) object {
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"name": name, "namespace": targetNamespace}}
	for key, value := range rest {
		o[key] = value
	}
	return o
}

// dotted is a value whose numbers are the same quantity for some pairs and different texts.
func dotted(value int) string { return []string{"1", "1.0", "1.30", "1.3", "x"}[value%5] }

var things = completed(
	&thing{
		name: "a", resource: schema.GroupResource{Resource: "configmaps"}, namespaced: true,
		make:  func(v int) object { return manifest("v1", "ConfigMap", "a", object{"data": object{"cpu": dotted(v)}}) },
		value: valueAt("data", "cpu"),
	},
	&thing{
		name: "b", resource: schema.GroupResource{Resource: "configmaps"}, namespaced: true,
		make: func(v int) object {
			return manifest("v1", "ConfigMap", "b", object{"data": object{"v": strconv.Itoa(v)}})
		},
		value: valueAt("data", "v"),
	},
	&thing{
		// Value 0 selects all Pods, and value 1 opens it for everybody in no namespace.
		name: "p", resource: schema.GroupResource{Group: "networking.k8s.io", Resource: "networkpolicies"}, namespaced: true,
		make: func(v int) object {
			spec := object{"podSelector": object{}, "policyTypes": []any{"Ingress"}}
			if v > 0 {
				spec["ingress"] = []any{[]object{{}, {"from": []any{object{"namespaceSelector": object{}}}}, {"from": []any{object{"podSelector": object{}}}}, {"from": []any{object{"podSelector": object{}, "namespaceSelector": object{}}}}}[v%4]}
			}
			return manifest("networking.k8s.io/v1", "NetworkPolicy", "p", object{"spec": spec})
		},
		value: func(o object) string { spec, _ := o["spec"].(map[string]any); return marshal(spec["ingress"]) },
	},
	&thing{
		name: "d", resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, namespaced: true,
		make: func(v int) object {
			return manifest("apps/v1", "Deployment", "d", object{"spec": object{
				"replicas": 0, "selector": object{"matchLabels": object{"app": "d"}},
				"template": object{"metadata": object{"labels": object{"app": "d"}}, "spec": object{"containers": []any{
					object{"name": "c", "image": "i", "env": []any{object{"name": "memory", "value": dotted(v)}}},
				}}},
			}})
		},
		value: func(o object) string {
			spec, _ := o["spec"].(map[string]any)
			template, _ := spec["template"].(map[string]any)
			pod, _ := template["spec"].(map[string]any)
			containers, _ := pod["containers"].([]any)
			if len(containers) == 0 {
				return ""
			}
			return marshal(containers[0].(map[string]any)["env"])
		},
	},
	&thing{
		name: "w", resource: schema.GroupResource{Group: "things.example.org", Resource: "widgets"}, custom: "widgets.things.example.org",
		make: func(v int) object {
			return manifest("things.example.org/v1", "Widget", "w", object{"spec": object{"v": strconv.Itoa(v)}})
		},
		value: valueAt("spec", "v"),
	},
	&thing{
		name: "gadgets", resource: schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		make: func(v int) object {
			o := definition("Gadget", "gadgets", "Cluster")
			o["spec"].(map[string]any)["names"].(map[string]any)["categories"] = []any{strconv.Itoa(v)}
			return o
		},
		value: func(o object) string {
			spec, _ := o["spec"].(map[string]any)
			names, _ := spec["names"].(map[string]any)
			return marshal(names["categories"])
		},
	},
	&thing{
		name: "g", resource: schema.GroupResource{Group: "things.example.org", Resource: "gadgets"}, custom: "gadgets.things.example.org",
		make: func(v int) object {
			return manifest("things.example.org/v1", "Gadget", "g", object{"spec": object{"v": strconv.Itoa(v)}})
		},
		value: valueAt("spec", "v"),
	},
	&thing{
		name: "fixed", resource: schema.GroupResource{Resource: "configmaps"}, namespaced: true,
		make: func(v int) object {
			return manifest("v1", "ConfigMap", "fixed", object{"data": object{"v": strconv.Itoa(v)}, "immutable": true})
		},
		value: valueAt("data", "v"),
	},
)

// notOursTexts are what Secrets have for objects that are not to be applied.
var notOursTexts = func() map[string]bool {
	texts := map[string]bool{}
	for _, t := range things {
		for text, mode := range t.modes {
			if mode == notOurs {
				texts[text] = true
			}
		}
	}
	return texts
}()

func completed(things ...*thing) []*thing {
	for _, t := range things {
		t.complete()
	}
	return things
}

func definition(kind, plural, scope string) object {
	o := manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural+".things.example.org", object{"spec": object{
		"group": "things.example.org", "scope": scope, "names": object{"kind": kind, "plural": plural},
		"versions": []any{object{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}}},
	}})
	delete(o["metadata"].(map[string]any), "namespace")
	return o
}

// mostValues counts the values; they begin with 0.
const mostValues = 5

// Modes are what annotations say may be done with an object. A Secret has value + mostValues * mode.
const (
	plain = iota
	createdOnce
	notOurs
	keptObject
	mostModes
)

var annotationsOfModes = [mostModes]object{
	nil, {resourcesv1alpha1.AnnotationIgnore: "true"}, {resourcesv1alpha1.AnnotationMode: resourcesv1alpha1.ModeIgnore}, {resourcesv1alpha1.AnnotationKeepObject: "true"},
}

func (t *thing) complete() {
	o := t.make(0)
	t.kind, t.objectName, t.values, t.modes = fake.Text(o, "kind"), fake.Text(o, "metadata", "name"), map[string]string{}, map[string]int{}
	for value := range mostValues * mostModes {
		o, mode := t.make(value%mostValues), value/mostValues
		if t.name == "fixed" && mode == keptObject {
			mode = plain // What is never deleted, and is immutable, could never become what is wanted.
		}
		if annotations := annotationsOfModes[mode]; annotations != nil {
			fake.Meta(o)["annotations"] = annotations
		}
		text := marshal(o)
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		t.texts, t.values[encoded] = append(t.texts, encoded), t.value(decode(text))
		t.modes[encoded] = mode
	}
}

// valueOfText is the value that a Secret's text asks for.
func (t *thing) valueOfText(text string) string {
	value, found := t.values[text]
	if !found {
		panic("no Secret has the text " + text)
	}
	return value
}

// key is where the thing is, given how its kind is served.
func (t *thing) key(namespaced bool) fake.Key {
	key := fake.Key{GroupResource: t.resource, Name: t.objectName}
	if namespaced {
		key.Namespace = targetNamespace
	}
	return key
}

func marshal(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func decode(text string) object {
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}

// content is what a Secret has: values of things by their number.
type content map[int]int

func (c content) String() string {
	text := ""
	for i, t := range things {
		if value, found := c[i]; found {
			text += fmt.Sprintf(" %s=%d%s", t.name, value%mostValues, []string{"", " once", " not ours", " kept", " but its value", " but its label"}[value/mostValues])
		}
	}
	return "{" + text + " }"
}

// data is the data of a Secret with the content.
func (c content) data() map[string]any {
	data := map[string]any{}
	for i, t := range things {
		if value, found := c[i]; found {
			data[t.name+".json"] = t.texts[value]
		}
	}
	return data
}
