package admit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func pointerTo[T any](value T) *T { return &value }

// TestPatch: a patch touches what the function changed, and nothing else (FM-6, CW-T7, WB-1).
func TestPatch(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		change func(*corev1.Pod)
		want   string
	}{
		"FM-5/nothing changes, whatever the type does not know": {`{"spec":{"future":1,"containers":[{"name":"a","resources":{"limits":{"cpu":"1000m"}}}]}}`, func(*corev1.Pod) {}, `null`},
		"CW-T7/FM-6, unknown fields beside a change":            {`{"spec":{"futureField":1,"big":123456789012345678901234567890}}`, func(p *corev1.Pod) { p.Spec.NodeName = "x" }, `[{"op":"add","path":"/spec/nodeName","value":"x"}]`},
		"a parent that is there":                                {`{"spec":{"securityContext":{"future":1}}}`, func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsUser = pointerTo(int64(3)) }, `[{"op":"add","path":"/spec/securityContext/runAsUser","value":3}]`},
		"a parent that is not there": {`{"spec":{}}`, func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: pointerTo(int64(3))}
		}, `[{"op":"add","path":"/spec/securityContext","value":{"runAsUser":3}}]`},
		"a parent that is null": {`{"spec":{"securityContext":null}}`, func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{} }, `[{"op":"replace","path":"/spec/securityContext","value":{}}]`},
		"a parent that the type always writes": {`{"spec":{"containers":[{"name":"a"}]}}`, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, `[{"op":"add","path":"/spec/containers/0/resources","value":{"limits":{"cpu":"1"}}}]`},
		"a map that is empty": {`{"metadata":{"labels":{}}}`, func(p *corev1.Pod) { p.Labels = map[string]string{"a/b~c": ""} }, `[{"op":"add","path":"/metadata/labels/a~1b~0c","value":""}]`},
		"a field that goes":   {`{"spec":{"priority":5,"nodeName":"x"}}`, func(p *corev1.Pod) { p.Spec.Priority, p.Spec.NodeName = nil, "" }, `[{"op":"remove","path":"/spec/nodeName"},{"op":"remove","path":"/spec/priority"}]`},
		"false is a value":    {`{"spec":{"automountServiceAccountToken":true}}`, func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = pointerTo(false) }, `[{"op":"replace","path":"/spec/automountServiceAccountToken","value":false}]`},
		"a list that begins":  {`{"spec":{"containers":[{"name":"a","env":[]}]}}`, func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "x"}} }, `[{"op":"add","path":"/spec/containers/0/env/0","value":{"name":"x"}}]`},
		"an element before others keeps what those have": {`{"spec":{"containers":[{"name":"a","future":1},{"name":"b","future":2}]}}`, func(p *corev1.Pod) {
			p.Spec.Containers = append([]corev1.Container{{Name: "x"}}, p.Spec.Containers...)
			p.Spec.Containers[2].Image = "i"
		}, `[{"op":"add","path":"/spec/containers/0","value":{"name":"x","resources":{}}},{"op":"add","path":"/spec/containers/2/image","value":"i"}]`},
		"an element that goes": {`{"spec":{"containers":[{"name":"a"},{"name":"b","future":2},{"name":"c","future":3}]}}`, func(p *corev1.Pod) {
			p.Spec.Containers = p.Spec.Containers[2:]
			p.Spec.Containers[0].Image = "i"
		}, `[{"op":"remove","path":"/spec/containers/0"},{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/0/image","value":"i"}]`},
		"an element of another name is another": {`{"spec":{"containers":[{"name":"a","future":1}]}}`, func(p *corev1.Pod) { p.Spec.Containers[0].Name = "b" },
			`[{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/0","value":{"name":"b","resources":{}}}]`},
		"an element that moves takes with it what the type does not know": {`{"spec":{"containers":[{"name":"a","future":1},{"name":"b","future":2}]}}`, func(p *corev1.Pod) {
			p.Spec.Containers[0], p.Spec.Containers[1] = p.Spec.Containers[1], p.Spec.Containers[0]
		}, `[{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/1","value":{"future":1,"name":"a"}}]`},
		"an element without a name changes where it is": {`{"spec":{"tolerations":[{"key":"a","future":1},{"key":"b"}]}}`, func(p *corev1.Pod) { p.Spec.Tolerations[0].Effect = "NoExecute" },
			`[{"op":"add","path":"/spec/tolerations/0/effect","value":"NoExecute"}]`},
		"a list of texts": {`{"spec":{"containers":[{"name":"a","args":["x","y"]}]}}`, func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"x", "z"} },
			`[{"op":"replace","path":"/spec/containers/0/args/1","value":"z"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &corev1.Pod{}, &corev1.Pod{}
			for _, pod := range []*corev1.Pod{before, after} {
				if err := unmarshal([]byte(c.raw), pod); err != nil {
					t.Fatal(err)
				}
			}
			c.change(after)
			patch, err := patchOf([]byte(c.raw), before, after)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			if string(text) != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

// thing has every shape that a type may have.
type thing struct {
	Name   string `json:"name,omitempty"`
	Number *int64 `json:"number,omitempty"`
	Always struct {
		Text string `json:"text,omitempty"`
	} `json:"always"`
	Map    map[string]string `json:"map,omitempty"`
	Things []thing           `json:"things,omitempty"`
	Below  *thing            `json:"below,omitempty"`
	Texts  []string          `json:"texts,omitempty"`
}

// drawThing draws the JSON of a thing; unknown says that it may have fields that the type does not know.
func drawThing(rt *rapid.T, depth int, unknown bool) map[string]any {
	result := map[string]any{}
	put := func(key string, value func() any) {
		switch rapid.IntRange(0, 5).Draw(rt, key) {
		case 0:
			result[key] = nil
		case 1, 2, 3:
			result[key] = value()
		}
	}
	put("name", func() any { return rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "name") })
	put("number", func() any {
		return json.Number(rapid.SampledFrom([]string{"0", "9223372036854775807"}).Draw(rt, "number"))
	})
	put("always", func() any { return map[string]any{"text": "t"} })
	put("map", func() any {
		return rapid.MapOfN(rapid.SampledFrom([]string{"x/~", "y"}), rapid.SampledFrom([]any{"", "v"}), 0, 2).Draw(rt, "map")
	})
	put("texts", func() any { return rapid.SliceOfN(rapid.SampledFrom([]any{"s", "t", "u"}), 0, 4).Draw(rt, "texts") })
	if depth > 0 {
		put("below", func() any { return drawThing(rt, depth-1, unknown) })
		put("things", func() any {
			things := make([]any, rapid.IntRange(0, 4).Draw(rt, "things"))
			for i := range things {
				things[i] = drawThing(rt, depth-1, unknown)
			}
			return things
		})
	}
	if unknown {
		put("future", func() any { return json.Number("123456789012345678901234567890.10") })
	}
	return result
}

// TestPatchLaw: whatever a function makes of an object, the patch makes it of the bytes that were sent, and what the type does not know of
// objects that stay is there afterwards.
func TestPatchLaw(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sent := drawThing(rt, 2, true)
		raw, err := json.Marshal(sent)
		if err != nil {
			rt.Fatal(err)
		}
		wanted, err := json.Marshal(drawThing(rt, 2, false))
		if err != nil {
			rt.Fatal(err)
		}
		before, after, got := &thing{}, &thing{}, &thing{}
		if err := unmarshal(raw, before); err != nil {
			rt.Fatal(err)
		}
		if err := unmarshal(wanted, after); err != nil {
			rt.Fatal(err)
		}
		patch, err := patchOf(raw, before, after)
		if err != nil {
			rt.Fatal(err)
		}
		result := raw
		if len(patch) > 0 {
			text, err := json.Marshal(patch)
			if err != nil {
				rt.Fatal(err)
			}
			decoded, err := jsonpatch.DecodePatch(text)
			if err != nil {
				rt.Fatal(err)
			}
			if result, err = decoded.Apply(raw); err != nil {
				rt.Fatalf("%s\ndoes not fit %s: %v", text, raw, err)
			}
		}
		if err := unmarshal(result, got); err != nil {
			rt.Fatal(err)
		}
		want, err := json.Marshal(after)
		if err != nil {
			rt.Fatal(err)
		}
		if is, err := json.Marshal(got); err != nil || string(is) != string(want) {
			rt.Fatalf("%s: %s\nbecame %s, %v\nwant %s", raw, mustJSON(patch), is, err, want)
		}
		if future, found := sent["future"]; found && future != nil && !strings.Contains(string(result), `"future":123456789012345678901234567890.10`) {
			rt.Fatalf("%s became %s", raw, result)
		}
		if again, err := patchOf(result, got, got); err != nil || again != nil {
			rt.Fatalf("no change is %v, %v", again, err)
		}
	})
}

func mustJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestKept: elements are paired in order, whatever is repeated.
func TestKept(t *testing.T) {
	named := func(names ...string) (list []any) {
		for _, name := range names {
			list = append(list, map[string]any{"name": name})
		}
		return list
	}
	got := kept(named("a", "b", "a", "c"), named("x", "b", "a", "a", "c"))
	if want := [][2]int{{1, 1}, {2, 2}, {3, 4}}; !reflect.DeepEqual(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
