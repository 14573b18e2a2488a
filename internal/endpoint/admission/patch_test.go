package admission

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func pointerTo[T any](value T) *T { return &value }

// TestPatch: a patch touches what the function changed, and nothing else (FM-6, WB-1).
func TestPatch(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		change func(*corev1.Pod)
		want   string
	}{
		"FM-5/nothing changes, whatever the type does not know": {`{"spec":{"future":1,"containers":[{"name":"a","resources":{"limits":{"cpu":"1000m"}}}]}}`, func(*corev1.Pod) {}, `null`},
		"FM-6, unknown fields beside a change":                  {`{"spec":{"futureField":1,"big":123456789012345678901234567890}}`, func(p *corev1.Pod) { p.Spec.NodeName = "x" }, `[{"op":"add","path":"/spec/nodeName","value":"x"}]`},
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
		}, `[{"op":"remove","path":"/spec/containers/1"},{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/0/image","value":"i"}]`},
		"an element of another name is another": {`{"spec":{"containers":[{"name":"a","future":1}]}}`, func(p *corev1.Pod) { p.Spec.Containers[0].Name = "b" },
			`[{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/0","value":{"name":"b","resources":{}}}]`},
		"an element that moves takes with it what the type does not know": {`{"spec":{"containers":[{"name":"a","future":1},{"name":"b","future":2}]}}`, func(p *corev1.Pod) {
			p.Spec.Containers[0], p.Spec.Containers[1] = p.Spec.Containers[1], p.Spec.Containers[0]
		}, `[{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/1","value":{"name":"a","future":1}}]`},
		"FM-8/an element that moves and changes": {`{"spec":{"containers":[{"name":"a","future":1},{"name":"b","future":2}]}}`, func(p *corev1.Pod) {
			p.Spec.Containers[0], p.Spec.Containers[1] = p.Spec.Containers[1], p.Spec.Containers[0]
			p.Spec.Containers[1].Image = "i"
		}, `[{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/1","value":{"name":"a","future":1}},{"op":"add","path":"/spec/containers/1/image","value":"i"}]`},
		"an element without a name changes where it is": {`{"spec":{"tolerations":[{"key":"a","future":1},{"key":"b"}]}}`, func(p *corev1.Pod) { p.Spec.Tolerations[0].Effect = "NoExecute" },
			`[{"op":"add","path":"/spec/tolerations/0/effect","value":"NoExecute"}]`},
		"a list of texts": {`{"spec":{"containers":[{"name":"a","args":["x","y"]}]}}`, func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"x", "z"} },
			`[{"op":"replace","path":"/spec/containers/0/args/1","value":"z"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, operations(t, c.raw, c.change), c.want)
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
	Placed []placedThing     `json:"placed,omitempty"`
}

// placedThing has no name.
type placedThing struct {
	Text string `json:"text,omitempty"`
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
	put("placed", func() any {
		placed := make([]any, rapid.IntRange(0, 3).Draw(rt, "placed"))
		for i := range placed {
			placed[i] = map[string]any{"text": rapid.SampledFrom([]string{"", "p", "q"}).Draw(rt, "text")}
			if unknown {
				placed[i].(map[string]any)["future"] = json.Number("123456789012345678901234567890.10")
			}
		}
		return placed
	})
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

// applied returns what a patch makes of an object.
func applied(rt *rapid.T, raw []byte, patch Patch) []byte {
	if len(patch) == 0 {
		return raw
	}
	text, err := json.Marshal(patch)
	must.Succeed(rt, err)
	decoded, err := jsonpatch.DecodePatch(text)
	must.Succeed(rt, err)
	result, err := decoded.Apply(raw)
	expect.Succeed(rt, err, "%s\ndoes not fit %s", text, raw)
	return result
}

// drawSent draws a thing as it may be sent, and its typed form.
func drawSent(rt *rapid.T) (raw []byte, before *thing) {
	raw, err := json.Marshal(drawThing(rt, 2, true))
	must.Succeed(rt, err)
	before = &thing{}
	must.Succeed(rt, unmarshal(raw, before))
	return raw, before
}

// copied returns a thing of the same JSON.
func copied(t rapid.TB, object *thing) *thing {
	own := &thing{}
	must.Succeed(t, unmarshal([]byte(mustJSON(object)), own))
	return own
}

const future = `"future":123456789012345678901234567890.10`

// checkPatch: the patch makes of what was sent what a function made of the typed form.
func checkPatch(rt *rapid.T, raw []byte, before, after *thing) (result []byte) {
	patch, err := patchOf(raw, []byte(mustJSON(before)), []byte(mustJSON(after)))
	must.Succeed(rt, err)
	result = applied(rt, raw, patch)
	got := &thing{}
	must.Succeed(rt, unmarshal(result, got))
	want, is := mustJSON(after), mustJSON(got)
	must.Equal(rt, is, want, "%s: %s", raw, mustJSON(patch))
	again, err := patchOf(result, []byte(mustJSON(got)), []byte(mustJSON(got)))
	must.True(rt, err == nil && again == nil, "no change is %v, %v", again, err)
	return result
}

// TestPatchProperty: whatever a function makes of an object, the patch makes it of the bytes that were sent, and what the type does not know of
// objects that stay is there afterwards.
func TestPatchProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw, before := drawSent(rt)
		wanted, after := mustJSON(drawThing(rt, 2, false)), &thing{}
		must.Succeed(rt, unmarshal([]byte(wanted), after))
		result := checkPatch(rt, raw, before, after)
		var top map[string]json.RawMessage
		must.Succeed(rt, json.Unmarshal(raw, &top))
		if _, found := top["future"]; found && !strings.Contains(string(result), future) && string(top["future"]) != "null" {
			rt.Fatalf("%s became %s", raw, result)
		}
	})
}

// TestSmallChanges: what webhooks mostly do, which is to set, add and append, removes and rewrites nothing at all that was sent beside it.
func TestSmallChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw, before := drawSent(rt)
		after := copied(rt, before)
		var change func(*thing)
		change = func(on *thing) {
			switch rapid.IntRange(0, 7).Draw(rt, "change") {
			case 0:
				on.Texts = append(on.Texts, "new")
			case 1:
				on.Things = append(on.Things, thing{Name: "new", Texts: []string{"x"}}, thing{})
			case 2:
				if on.Map == nil {
					on.Map = map[string]string{}
				}
				on.Map["new/~"] = "é"
			case 3:
				if on.Number == nil {
					on.Number = pointerTo(int64(7))
				}
			case 4:
				if on.Below == nil {
					on.Below = &thing{Name: "below"}
				} else {
					change(on.Below)
				}
			case 5:
				on.Placed = append(on.Placed, placedThing{Text: "new"})
			default: // Elements without names may have changed their places.
				if !slices.ContainsFunc(on.Things, func(t thing) bool { return t.Name == "" }) {
					for i := range on.Things {
						change(&on.Things[i])
					}
				}
				for i := range on.Placed {
					on.Placed[i].Text += "!"
				}
			}
		}
		change(after)
		result := checkPatch(rt, raw, before, after)
		was, is := strings.Count(string(raw), future), strings.Count(string(result), future)
		must.Equal(rt, was, is, "%s became %s: of %d values that the type does not know are there", raw, result, was)
	})
}

// FuzzPatch: whatever is sent, also with keys that are there twice and spelt with escapes, a change gets to what a decoder reads, and is no
// change the second time.
func FuzzPatch(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"texts":["a"],"future":1}`, `{"texts":["a"],"texts":["b","c"]}`, `{"t\u0065xts":["a"]}`, `{"map":{"new/~":null}}`, `{"things":[{"name":"a","x":1},null,{"name":"a"}]}`,
		`{"below":{"below":{"texts":null}},"below":{}}`, `{"placed":[{"x":1},null]}`, `{"always":null}`, `{"number":9223372036854775807,"map":{"a":"b","a":"c"}}`, ` { "texts" : [ "\u00e9" , "]" ] } `,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := &thing{}
		if !json.Valid(raw) || unmarshal(raw, before) != nil || !strings.HasPrefix(strings.TrimSpace(string(raw)), "{") {
			knownTo[thing](raw)
			return
		}
		change := func(from *thing) *thing {
			after := copied(t, from)
			for _, on := range []*thing{after, after.Below} {
				if on == nil {
					continue
				}
				if !slices.Contains(on.Texts, "new") {
					on.Texts = append(on.Texts, "new")
				}
				if on.Map == nil {
					on.Map = map[string]string{}
				}
				on.Map["new/~"] = "é"
				for i := range on.Things {
					on.Things[i].Number = pointerTo(int64(7))
				}
				for i := range on.Placed {
					on.Placed[i].Text = "!"
				}
			}
			return after
		}
		after := change(before)
		var patch Patch
		var err error
		yamltest.Bounded(t, len(raw), func() { patch, err = patchOf(raw, []byte(mustJSON(before)), []byte(mustJSON(after))) })
		must.Succeed(t, err)
		decoded, err := jsonpatch.DecodePatch([]byte(mustJSON(patch)))
		must.Succeed(t, err, "%s", mustJSON(patch))
		// Where a key is there twice, the patch is about the last one, as an API server's is, and a decoder puts both together.
		result, err := decoded.Apply(raw)
		must.Succeed(t, err, "%s does not fit %s", mustJSON(patch), raw)
		got := &thing{}
		must.Succeed(t, unmarshal(result, got))
		if want := mustJSON(after); mustJSON(got) != want && !twice(raw) {
			t.Fatalf("%s: %s\nbecame %s\nwant %s", raw, mustJSON(patch), mustJSON(got), want)
		}
	})
}

// twice reports whether an object in some JSON has a key twice.
func twice(raw []byte) bool {
	wrong, err := kjson.UnmarshalStrict(raw, &map[string]any{}, kjson.DisallowDuplicateFields)
	return err != nil || len(wrong) > 0
}

func mustJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestListsAreLinear: what a list of many elements takes grows with their number, also if they move (FM-6).
func TestListsAreLinear(t *testing.T) {
	yamltest.Linear(t, 2000, func(n int) {
		var was, is []any
		for i := range n {
			was = append(was, map[string]any{"a": strconv.Itoa(i)})
		}
		for i := range n + 1 {
			is = append(is, map[string]any{"a": strconv.Itoa(n - i)})
		}
		before, after := []byte(mustJSON(was)), []byte(mustJSON(is))
		patch, err := patchOf(before, before, after)
		expect.True(t, len(patch) != 0 && err == nil, "FM-6: got %v, %v", patch, err)
	})
}
