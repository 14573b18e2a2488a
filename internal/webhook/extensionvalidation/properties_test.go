package extensionvalidation

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/internal/externalapi/extensions/specs"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// drawSpec draws a spec of a kind with some defects.
func drawSpec(rt *rapid.T, t testing.TB, kind, label string) map[string]any {
	spec := map[string]any{}
	must.Succeed(rt, json.Unmarshal(toJSON(t, valid[kind]), &spec))
	for range rapid.IntRange(0, 3).Draw(rt, label+" defects") {
		damage(rt, spec, label)
	}
	return spec
}

// damage changes one value somewhere.
func damage(rt *rapid.T, object map[string]any, label string) {
	keys := slices.Sorted(maps.Keys(object))
	if len(keys) == 0 {
		return
	}
	key := rapid.SampledFrom(keys).Draw(rt, label+" key")
	deeper := rapid.Bool().Draw(rt, label+" deeper")
	switch value := object[key].(type) {
	case map[string]any:
		if deeper {
			damage(rt, value, label)
			return
		}
	case []any:
		if len(value) > 0 && deeper {
			if below, is := value[0].(map[string]any); is {
				damage(rt, below, label)
				return
			}
		}
	}
	object[key] = rapid.SampledFrom([]any{nil, "", "x", "-", 0, -1, 1 << 40, []any{}, []any{""}, map[string]any{}, true}).Draw(rt, label+" value")
}

// review is a request about an object with a spec; without an old one it is a creation.
func review(rt *rapid.T, kind string, metadata map[string]any, spec, old any) admissionv1.AdmissionRequest {
	raw := func(spec any) []byte {
		meta := map[string]any{"name": "obj", "resourceVersion": "1"}
		if n := namespaceOf(kind); n != "" {
			meta["namespace"] = n
		}
		maps.Copy(meta, metadata)
		text, err := json.Marshal(map[string]any{"metadata": meta, "spec": spec})
		must.Succeed(rt, err)
		return text
	}
	r := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: namespaceOf(kind), Object: runtime.RawExtension{Raw: raw(spec)}}
	if old != nil {
		r.Operation, r.OldObject.Raw = admissionv1.Update, raw(old)
	}
	return r
}

var anyKind = rapid.Custom(func(rt *rapid.T) Webhook { return rapid.SampledFrom(Webhooks()).Draw(rt, "kind") })

// TestProperties: creations and updates of something else are judged alike; an update that changes nothing is admitted; an unknown field changes no judgement.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := anyKind.Draw(rt, "webhook")
		spec := drawSpec(rt, t, w.kind, "spec")
		created := admissiontest.Respond(w.Decide, review(rt, w.kind, nil, spec, nil))
		if created.Result.Code == 400 {
			return // Not an object of the kind.
		}
		r := review(rt, w.kind, nil, spec, spec)
		for _, finalizers := range []string{`[]`, `["x"]`} {
			r.OldObject.Raw = []byte(strings.Replace(string(r.Object.Raw), `"metadata":{`, `"metadata":{"finalizers":`+finalizers+`,`, 1))
			updated := admissiontest.Respond(w.Decide, r)
			expect.True(rt, updated.Allowed, "T4-4, EV-48: nothing that is judged changes: %+v", updated.Result)
		}
		more := maps.Clone(spec)
		more["x-future"] = map[string]any{"deep": []any{1, nil}}
		with := admissiontest.Respond(w.Decide, review(rt, w.kind, nil, more, nil))
		expect.DeepEqual(rt, created, with, "without: %+v\nwith an unknown field: %+v", created.Result, with.Result)
		expect.False(rt, strings.HasPrefix(created.Result.Message, "panic"), "%v", created.Result.Message)
	})
}

// TestDeletionProperty: while an object is being deleted an update is admitted if nothing that is wanted changes, and refused at "spec" if
// anything does, whatever the spec says.
func TestDeletionProperty(t *testing.T) {
	deletion := map[string]any{"deletionTimestamp": "2020-01-01T00:00:00Z"}
	rapid.Check(t, func(rt *rapid.T) {
		w := anyKind.Draw(rt, "webhook")
		old := drawSpec(rt, t, w.kind, "old")
		response := admissiontest.Respond(w.Decide, review(rt, w.kind, deletion, old, old))
		if response.Result.Code == 400 {
			return // Not an object of the kind.
		}
		expect.True(rt, response.Allowed, "WB-18: nothing changed: %+v", response.Result)
		now := maps.Clone(old)
		now[rapid.SampledFrom([]string{"x-future", "class", "replicas"}).Draw(rt, "field")] = "changed"
		response = admissiontest.Respond(w.Decide, review(rt, w.kind, deletion, now, old))
		if response.Allowed || response.Result.Code == 422 && response.Result.Details.Causes[0].Field != "spec" {
			rt.Errorf("EV-4, EV-44: something changed: %+v", response.Result)
		}
	})
}

// TestChanges: how changes are told (EV-5).
func TestChanges(t *testing.T) {
	osc, bastion, worker, dns := reflect.TypeFor[specs.OperatingSystemConfigSpec](), reflect.TypeFor[specs.BastionSpec](), reflect.TypeFor[specs.WorkerSpec](), reflect.TypeFor[specs.DNSRecordSpec]()
	for name, c := range map[string]struct {
		of       reflect.Type
		now, old string
		want     []string
	}{
		"EV-5/an embedded struct":            {dns, `{type: changed-type}`, `{type: provider}`, []string{`DefaultSpec.Type: changed-type != provider`}},
		"EV-5/a struct":                      {dns, `{secretRef: {name: a}}`, `{}`, []string{`SecretRef.Name: a != `}},
		"EV-5/a list of structs":             {bastion, `{ingress: [{ipBlock: {cidr: a}}]}`, `{ingress: [{ipBlock: {cidr: b}}]}`, []string{`Ingress.slice[0].IPBlock.CIDR: a != b`}},
		"EV-5/a pointer comes":               {dns, `{providerConfig: {a: 1}}`, `{}`, []string{`DefaultSpec.ProviderConfig: runtime.RawExtension != <nil pointer>`}},
		"EV-5/a pointer goes":                {dns, `{}`, `{providerConfig: {a: 1}, region: ""}`, []string{`DefaultSpec.ProviderConfig: <nil pointer> != runtime.RawExtension`, `Region: <nil pointer> != string`}},
		"EV-5/what others define":            {dns, `{providerConfig: {password: a}}`, `{providerConfig: {password: b}}`, []string{`DefaultSpec.ProviderConfig: <not shown> != <not shown>`}},
		"EV-5/a list comes":                  {dns, `{values: [a, b]}`, `{}`, []string{`Values: [a b] != <nil slice>`}},
		"EV-5/a list goes":                   {dns, `{}`, `{values: [a]}`, []string{`Values: <nil slice> != [a]`}},
		"EV-5/a longer list":                 {dns, `{values: [a, b]}`, `{values: [a]}`, []string{`Values.slice[1]: b != <no value>`}},
		"EV-5/a shorter list":                {dns, `{values: [a]}`, `{values: [a, b]}`, []string{`Values.slice[1]: <no value> != b`}},
		"EV-5/a list of structs comes":       {osc, `{files: [{path: a, content: {inline: {data: secret}}}]}`, `{}`, []string{`Files: []specs.File != <nil slice>`}},
		"EV-5/a number":                      {dns, `{ttl: 9007199254740993}`, `{ttl: 9007199254740992}`, []string{`TTL: 9007199254740993 != 9007199254740992`}},
		"EV-5/a map comes":                   {worker, `{pools: [{nodeTemplate: {capacity: {cpu: 1}}}]}`, `{pools: [{nodeTemplate: {}}]}`, []string{`Pools.slice[0].NodeTemplate.Capacity: map[string]resource.Quantity != <nil map>`}},
		"EV-5/a map goes":                    {worker, `{pools: [{nodeTemplate: {}}]}`, `{pools: [{nodeTemplate: {capacity: {cpu: 1}}}]}`, []string{`Pools.slice[0].NodeTemplate.Capacity: <nil map> != map[string]resource.Quantity`}},
		"EV-5/keys of a map":                 {worker, `{pools: [{nodeTemplate: {capacity: {cpu: 1, memory: 1}}}]}`, `{pools: [{nodeTemplate: {capacity: {cpu: 2, gpu: 1}}}]}`, []string{`Pools.slice[0].NodeTemplate.Capacity.map[cpu]: 1 != 2`, `Pools.slice[0].NodeTemplate.Capacity.map[gpu]: <does not have key> != resource.Quantity`, `Pools.slice[0].NodeTemplate.Capacity.map[memory]: resource.Quantity != <does not have key>`}},
		"EV-4/other spellings of a quantity": {worker, `{pools: [{nodeTemplate: {capacity: {cpu: 1000m, memory: 1Gi}}}]}`, `{pools: [{nodeTemplate: {capacity: {cpu: 1, memory: 1024Mi}}}]}`, nil},
		"EV-4/empty is as good as absent":    {worker, `{type: "", pools: [], secretRef: {}, x: [], y: null}`, `{sshPublicKey: "", region: ""}`, nil},
		"WB-17/user data":                    {bastion, `{userData: c2VjcmV0}`, `{}`, []string{`UserData: <not shown> != <not shown>`}},
		"WB-17/content of a file and a unit": {osc, `{files: [{content: {inline: {data: secret}}}], units: [{content: secret, dropIns: [{content: x}]}]}`, `{files: [{content: {inline: {data: other}}}], units: [{content: other, dropIns: [{content: secret}]}]}`, []string{`Units.slice[0].Content: <not shown> != <not shown>`, `Units.slice[0].DropIns.slice[0].Content: <not shown> != <not shown>`, `Files.slice[0].Content.Inline.Data: <not shown> != <not shown>`}},
		"EV-5/an unknown field":              {dns, `{future: {a: secret}}`, `{}`, []string{`Future: <not shown> != <not shown>`}},
		"EV-5/an unknown field of a list":    {worker, `{pools: [{maxSurge: 1}]}`, `{pools: [{maxSurge: 2}]}`, []string{`Pools.slice[0].MaxSurge: <not shown> != <not shown>`}},
		"EV-5/at most ten":                   {dns, `{values: [a, b, c, d, e, f, g, h, i, j, k, l]}`, `{values: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}`, []string{`Values.slice[0]: a != 1`, `Values.slice[1]: b != 1`, `Values.slice[2]: c != 1`, `Values.slice[3]: d != 1`, `Values.slice[4]: e != 1`, `Values.slice[5]: f != 1`, `Values.slice[6]: g != 1`, `Values.slice[7]: h != 1`, `Values.slice[8]: i != 1`, `Values.slice[9]: j != 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := changesOf(c.of, tree(t, c.now), tree(t, c.old))
			expect.DeepEqual(t, got, c.want)
		})
	}
}

func tree(t testing.TB, text string) (result any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(toJSON(t, text))))
	decoder.UseNumber()
	must.Succeed(t, decoder.Decode(&result))
	return result
}

// TestChangesProperty: a spec is not changed if it is the same, and the comparison has no direction.
func TestChangesProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now, old := drawSpec(rt, t, "OperatingSystemConfig", "now"), drawSpec(rt, t, "OperatingSystemConfig", "old")
		of := reflect.TypeFor[specs.OperatingSystemConfigSpec]()
		changes := changesOf(of, now, now)
		expect.True(rt, changes == nil, "the same: %q", changes)
		there, back := changesOf(of, now, old), changesOf(of, old, now)
		expect.Equal(rt, len(there), len(back), "there: %q, back: %q", there, back)
	})
}

func FuzzReviews(f *testing.F) {
	all := Webhooks()
	for i, w := range all {
		f.Add(i, toJSON(f, object(w.kind, valid[w.kind])), toJSON(f, deleted(w.kind, valid[w.kind])))
		f.Add(i, toJSON(f, deleted(w.kind, "{type: x}")), toJSON(f, deleted(w.kind, valid[w.kind])))
	}
	f.Fuzz(func(t *testing.T, n int, now, old []byte) {
		w := all[max(n, -n, 0)%len(all)]
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			request := admissionv1.AdmissionRequest{Operation: operation, Object: runtime.RawExtension{Raw: now}, OldObject: runtime.RawExtension{Raw: old}}
			var got *admissionv1.AdmissionResponse
			yamltest.Bounded(t, len(now)+len(old), func() { got = admissiontest.Respond(w.Decide, request) })
			expect.False(t, strings.HasPrefix(got.Result.Message, "panic: "), "%v", got.Result.Message)
		}
	})
}

func FuzzWebhook(f *testing.F) {
	w := webhookOf(f, "OperatingSystemConfig")
	admissiontest.FuzzReviews(f, w.Decide, admissionv1.AdmissionRequest{Namespace: "ns"}, string(toJSON(f, object(w.kind, valid[w.kind]))))
}

// FuzzChanges compares any two trees along each type.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(`{"pools":[{"nodeTemplate":{"capacity":{"cpu":"x"}}}]}`), []byte(`{"pools":[{"nodeTemplate":{"capacity":{"cpu":{}}}}]}`))
	f.Add([]byte(`{"providerConfig":1,"":{}}`), []byte(`[]`))
	types := []reflect.Type{reflect.TypeFor[specs.WorkerSpec](), reflect.TypeFor[specs.OperatingSystemConfigSpec](), reflect.TypeFor[specs.BastionSpec]()}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var now, old any
		if json.Unmarshal(a, &now) != nil || json.Unmarshal(b, &old) != nil {
			return
		}
		for _, of := range types {
			got := changesOf(of, now, now)
			expect.True(t, got == nil, "the same: %q", got)
			yamltest.Bounded(t, len(a)+len(b), func() {
				got := changesOf(of, now, old)
				expect.True(t, len(got) <= limit, "%d changes", len(got))
			})
		}
	})
}
