package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// object wraps a message as an API server does.
func object(apiVersion, kind string, raw []byte) []byte {
	typeMeta := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(apiVersion))
	typeMeta = protowire.AppendBytes(protowire.AppendTag(typeMeta, 2, protowire.BytesType), []byte(kind))
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), typeMeta)
	return append(bytes.Clone(magic), protowire.AppendBytes(protowire.AppendTag(unknown, 2, protowire.BytesType), raw)...)
}

// step is a field on the way to a list, by its names in both encodings.
type step struct {
	number protowire.Number
	name   string
	list   bool
	// entry is true for a map, whose empty entries are as short as those of a list.
	entry bool
}

// waysOf returns the ways to all lists and maps below a type.
func waysOf(t reflect.Type, depth int, seen []reflect.Type) (ways [][]step) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || depth == 0 || slices.Contains(seen, t) {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if len(tag) < 3 {
			continue
		}
		var s step
		_, _ = fmt.Sscan(tag[1], &s.number)
		s.name = name
		inner := f.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case inner.Kind() == reflect.Map:
			s.entry = true
			ways = append(ways, []step{s})
			inner = inner.Elem()
		case inner.Kind() == reflect.Slice && inner.Elem().Kind() != reflect.Uint8:
			s.list = true
			ways = append(ways, []step{s})
			inner = inner.Elem()
		}
		for _, way := range waysOf(inner, depth-1, append(slices.Clone(seen), t)) {
			ways = append(ways, append([]step{s}, way...))
		}
	}
	return ways
}

// dense returns an object of about a size whose last list on a way has nothing but empty elements.
func dense(way []step, size int) (protobuf []byte, text string) {
	last := way[len(way)-1]
	element := protowire.AppendBytes(protowire.AppendTag(nil, last.number, protowire.BytesType), nil)
	protobuf = bytes.Repeat(element, size/len(element))
	empty := "{}"
	if last.name == "" {
		return protobuf, ""
	}
	text = fmt.Sprintf(`%q:[%s]`, last.name, strings.TrimSuffix(strings.Repeat(empty+",", size/3), ","))
	if last.entry {
		protobuf = nil
		var b, j strings.Builder
		for i := 0; j.Len() < size; i++ {
			key := fmt.Sprint(i)
			entry := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte(key))
			protobuf = protowire.AppendBytes(protowire.AppendTag(protobuf, last.number, protowire.BytesType), entry)
			fmt.Fprintf(&j, `"%d":{},`, i)
		}
		fmt.Fprintf(&b, `%q:{%s}`, last.name, strings.TrimSuffix(j.String(), ","))
		text = b.String()
	}
	for _, s := range slices.Backward(way[:len(way)-1]) {
		if s.entry {
			protobuf = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), protobuf)
			text = `"a":{` + text + `}`
		}
		protobuf = protowire.AppendBytes(protowire.AppendTag(nil, s.number, protowire.BytesType), protobuf)
		switch {
		case s.name == "": // Fields of an embedded struct are those of its holder.
		case s.list:
			text = fmt.Sprintf(`%q:[{%s}]`, s.name, text)
		default:
			text = fmt.Sprintf(`%q:{%s}`, s.name, text)
		}
	}
	return protobuf, text
}

// live returns what the result of a function takes, with all that it still refers to.
func live(do func() any) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result := do()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(result)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// TestLawOfDensity: of all types of the library, and at each list and map in them, what passes the scan takes no more than it may, in both encodings.
func TestLawOfDensity(t *testing.T) {
	types := NewTypes()
	codecs := serializer.NewCodecFactory(scheme.Scheme)
	codec := codecs.UniversalDeserializer()
	tried := 0
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "PodList"}, {Version: "v1", Kind: "Node"},
		{Version: "v1", Kind: "PersistentVolumeClaim"}, {Version: "v1", Kind: "APIResourceList"}, {Version: "v1", Kind: "APIGroupList"}, {Version: "v1", Kind: "Status"},
		{Group: "apps", Version: "v1", Kind: "DeploymentList"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicyList"},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscalerList"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"},
	} {
		of := types.typeOf(gvk)
		if of == nil {
			t.Fatalf("%s is not known", gvk)
		}
		for _, way := range waysOf(of, 6, nil) {
			raw, text := dense(way, 16<<10)
			bodies := map[string][]byte{"protobuf": object(gvk.GroupVersion().String(), gvk.Kind, raw)}
			if text != "" {
				bodies["json"] = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,%s}`, gvk.GroupVersion(), gvk.Kind, text)
			}
			for encoding, body := range bodies {
				tried++
				q := &question{accept: kruntime.ContentTypeProtobuf}
				var counted *tally
				var err error
				if encoding == "protobuf" {
					counted, err = types.protobuf(body)
				} else {
					counted, err = types.json(q, body)
				}
				if err != nil {
					t.Fatalf("%s of %s at %v: %v", encoding, gvk.Kind, way, err)
				}
				took := live(func() any {
					decoded, _, _ := codec.Decode(body, nil, nil)
					return decoded
				})
				// Noise of the runtime, such as pools of the decoder.
				if took > counted.bytes+int64(len(body))+256<<10 {
					t.Errorf("LIM-2/%s of %s at %v: %d bytes take %d, counted %d", encoding, gvk.Kind, way, len(body), took, counted.bytes)
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("LIM-2: %d answers were tried", tried)
	}
}

// TestSmallAnswersNeedNoScan: no type makes more of an answer that is not scanned than the slack.
func TestSmallAnswersNeedNoScan(t *testing.T) {
	types := NewTypes()
	var most int64
	for _, known := range types.schemes {
		for _, of := range known.AllKnownTypes() {
			types.shapes.of(of)
		}
	}
	for _, of := range types.shapes.known {
		if of == nil {
			continue
		}
		for _, f := range of.byNumber {
			most = max(most, f.each+atOnce*f.size, f.first)
		}
		for _, f := range of.byName {
			most = max(most, f.each+atOnce*f.size, f.first)
		}
	}
	if takes := most * small / 2; takes > slack {
		t.Errorf("LIM-2: an answer of %d bytes that is not scanned may take %d, and has %d", small, takes, slack)
	}
}

// Values that become maps are counted as what they take.
func TestMapsAreCounted(t *testing.T) {
	for name, text := range map[string]string{
		"empty objects":    `{"kind":"A","apiVersion":"v1","a":[{}` + strings.Repeat(",{}", 30_000) + `]}`,
		"one key":          `{"kind":"A","apiVersion":"v1","a":[{"a":1}` + strings.Repeat(`,{"a":1}`, 20_000) + `]}`,
		"texts":            `{"kind":"A","apiVersion":"v1","a":[""` + strings.Repeat(`,"x"`, 30_000) + `]}`,
		"numbers":          `{"kind":"A","apiVersion":"v1","a":[1000` + strings.Repeat(",1000", 30_000) + `]}`,
		"lists":            `{"kind":"A","apiVersion":"v1","a":[[]` + strings.Repeat(",[0]", 30_000) + `]}`,
		"nine keys":        `{"kind":"A","apiVersion":"v1","a":[0` + strings.Repeat(`,{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}`, 3000) + `]}`,
		"many keys":        `{"kind":"A","apiVersion":"v1","a":{"x":0` + manyKeys(20_000) + `}}`,
		"one after a size": `{"kind":"A","apiVersion":"v1","a":{"x":0` + manyKeys(14_400) + `}}`,
		"schemas":          `{"kind":"A","apiVersion":"v1","a":{"x":0` + strings.ReplaceAll(manyKeys(8000), ":0", `:{"type":"string"}`) + `}}`,
	} {
		t.Run("LIM-2/"+name, func(t *testing.T) {
			counted, err := walk([]byte(text), nil, false)
			if err != nil {
				t.Fatal(err)
			}
			took := live(func() any {
				u := &unstructured.Unstructured{}
				if err := u.UnmarshalJSON([]byte(text)); err != nil {
					t.Fatal(err)
				}
				return u
			})
			t.Logf("%d bytes take %.1f times that, counted %.1f times", len(text), float64(took)/float64(len(text)), float64(counted.bytes)/float64(len(text)))
			if took > counted.bytes+64<<10 || counted.bytes > 3*took+64<<10 {
				t.Errorf("%d bytes take %d, counted %d", len(text), took, counted.bytes)
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return b.String()
}

// answering answers all requests.
type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

func saying(kind string, body []byte) answering {
	return func(r *http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: -1, Request: r}
	}
}

// ask sends a request through a transport, and reads the answer.
func ask(tb testing.TB, inner http.RoundTripper, accept, url string) ([]byte, error) {
	tb.Helper()
	share := NewBudget(256<<20, func() {}).Share(256 << 20)
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://target"+url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := (&Transport{Inner: inner, Types: NewTypes(), Share: share}).RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

const protobufFirst = "application/vnd.kubernetes.protobuf,application/json"

func TestHostileAnswersAreRefused(t *testing.T) {
	metadata := "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	empties := func(begin string, size int) []byte {
		return []byte(begin + "{}" + strings.Repeat(",{}", size/3) + "]}")
	}
	list := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[`
	pods := `{"apiVersion":"v1","kind":"PodList","items":[`
	event := func(object []byte) []byte {
		return append(append([]byte(`{"type":"ADDED","object":`), object...), "}\n"...)
	}
	containers := `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[`
	framed := func(object []byte) []byte {
		raw := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), object)
		e := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("ADDED"))
		e = protowire.AppendBytes(protowire.AppendTag(e, 2, protowire.BytesType), raw)
		return append([]byte{byte(len(e) >> 24), byte(len(e) >> 16), byte(len(e) >> 8), byte(len(e))}, e...)
	}
	for name, c := range map[string]struct {
		kind, accept, url string
		body              []byte
		passes            bool
	}{
		"metadata in JSON":                     {"application/json", metadata, "/apis/x.io/v1/xs", empties(list, 1<<20), false},
		"metadata of another kind":             {"application/json", metadata, "/apis/x.io/v1/xs", empties(`{"apiVersion":"x.io/v1","kind":"XList","items":[`, 1<<20), false},
		"metadata in protobuf":                 {kruntime.ContentTypeProtobuf, metadata, "/apis/x.io/v1/xs", object("meta.k8s.io/v1", "PartialObjectMetadataList", bytes.Repeat([]byte("\x12\x00"), 1<<19)), false},
		"protobuf without a type":              {"", metadata, "/apis/x.io/v1/xs", object("meta.k8s.io/v1", "PartialObjectMetadataList", bytes.Repeat([]byte("\x12\x00"), 1<<19)), false},
		"protobuf without a kind":              {kruntime.ContentTypeProtobuf, metadata, "/apis/x.io/v1/xs", object("", "", bytes.Repeat([]byte("\x12\x00"), 1<<19)), false},
		"maps":                                 {"application/json", "application/json", "/apis/x.io/v1/xs", empties(`{"apiVersion":"x.io/v1","kind":"XList","items":[`, 1<<20), false},
		"Pods in JSON":                         {"application/json", protobufFirst, "/api/v1/pods", empties(pods, 64<<10), false},
		"Pods in JSON, whose kind comes twice": {"application/json", protobufFirst, "/api/v1/pods", empties(`{"kind":"X","apiVersion":"v1","\u006bind":"PodList","items":[`, 64<<10), false},
		"Pods in JSON, by another client":      {"application/json", "application/json", "/api/v1/pods", empties(pods, 64<<10), false},
		"containers":                           {"application/json", protobufFirst, "/api/v1/pods/x", []byte(string(empties(containers, 64<<10)) + "}"), false},
		"discovery":                            {"application/json", "application/json", "/apis/x.io/v1", empties(`{"kind":"APIResourceList","apiVersion":"v1","resources":[`, 1<<20), false},
		"discovery of another kind":            {"application/json", "application/json", "/apis", empties(`{"groups":[`, 1<<20), false},
		"YAML":                                 {"application/yaml", "application/json", "/api/v1/pods/x", []byte("a: b"), false},
		"CBOR":                                 {"application/cbor", "application/json", "/api/v1/pods/x", []byte("a: b"), false},
		"more objects than asked for":          {"application/json", "application/json", "/api/v1/xs?limit=500", empties(`{"apiVersion":"x.io/v1","kind":"XList","items":[`, 3<<10), false},
		"as many objects as asked for":         {"application/json", "application/json", "/api/v1/xs?limit=1500", empties(`{"apiVersion":"x.io/v1","kind":"XList","items":[`, 3<<10), true},
		"more objects, from a cache":           {"application/json", "application/json", "/api/v1/xs?limit=500&resourceVersion=0", empties(`{"apiVersion":"x.io/v1","kind":"XList","items":[`, 3<<10), true},
		"more objects in protobuf":             {kruntime.ContentTypeProtobuf, metadata, "/apis/x.io/v1/xs?limit=500", object("meta.k8s.io/v1", "PartialObjectMetadataList", bytes.Repeat([]byte("\x12\x00"), 1200)), false},
		"brackets":                             {"application/json", "application/json", "/api/v1/xs", []byte(`{"a":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"), false},
		"an event in JSON":                     {"application/json", protobufFirst, "/api/v1/pods?watch=true", event(empties(containers, 64<<10)), false},
		"an event of many lines":               {"application/json", protobufFirst, "/api/v1/pods?watch=true", event(bytes.ReplaceAll([]byte(string(empties(containers, 64<<10))+"}"), []byte("},"), []byte("},\n"))), false},
		"an event in protobuf":                 {kruntime.ContentTypeProtobuf + ";stream=watch", protobufFirst, "/api/v1/pods?watch=true", framed(object("v1", "Pod", protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat([]byte("\x12\x00"), 32<<10)))), false},
		"an endless event":                     {"application/json", protobufFirst, "/api/v1/pods?watch=true", bytes.Repeat([]byte("x"), 9<<20), false},
		"an endless event in protobuf":         {kruntime.ContentTypeProtobuf + ";stream=watch", protobufFirst, "/api/v1/pods?watch=true", []byte("\xff\xff\xff\xffx"), false},
		"honest events":                        {"application/json", protobufFirst, "/api/v1/pods?watch=true", bytes.Repeat(event([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"`+strings.Repeat("a", 5000)+`"}}`)), 30), true},
		"honest small events":                  {"application/json", protobufFirst, "/api/v1/pods?watch=true", bytes.Repeat(event([]byte(`{"apiVersion":"v1","kind":"Pod"}`)), 300), true},
		"an honest event without its line":     {"application/json", protobufFirst, "/api/v1/pods?watch=true", []byte(`{"type":"ADDED","object":{}}`), true},
		"honest events in protobuf":            {kruntime.ContentTypeProtobuf + ";stream=watch", protobufFirst, "/api/v1/pods?watch=true", bytes.Repeat(append(framed(object("v1", "Pod", []byte("\x0a\x00"))), framed(object("v1", "Pod", append([]byte("\x0a\x82\x20\x0a\xff\x1f"), bytes.Repeat([]byte("a"), 4095)...)))...), 20), true},
		"a long text":                          {"text/plain", "application/json", "/healthz", bytes.Repeat([]byte("ok, "), 10_000), true},
		"a text that is JSON":                  {"text/plain", "application/json", "/apis", empties(`{"groups":[`, 1<<20), false},
	} {
		t.Run("LIM-2/"+name, func(t *testing.T) {
			got, err := ask(t, saying(c.kind, c.body), c.accept, c.url)
			if (err == nil) != c.passes || c.passes && !bytes.Equal(got, c.body) {
				t.Errorf("got %d bytes of %d, %v", len(got), len(c.body), err)
			}
		})
	}
}

// TestLawOfPeaks: the peak of the heap for an answer of n bytes is 8 n + 8 MiB at most, whether it passes or not.
func TestLawOfPeaks(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // So that the heap has little garbage.
	dense := func(entry string) func(int) []byte {
		return func(n int) []byte {
			return []byte(`{"apiVersion":"x.io/v1","kind":"X","metadata":{},"a":[` + strings.TrimSuffix(strings.Repeat(entry+",", n/len(entry)), ",") + "]}")
		}
	}
	for name, body := range map[string]func(int) []byte{
		"empty objects": dense("{}"), "schemas": dense(`{"name":{"type":"string","description":"the name of it"}}`), "texts": dense(`"` + strings.Repeat("x", 100) + `"`),
		"managed fields": dense(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`),
	} {
		for _, n := range []int{100 << 10, 500 << 10, 1 << 20, 8 << 20} {
			text := body(n)
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			peak, stop := watchHeap()
			got, err := ask(t, saying("application/json", text), "application/json", "/apis/x.io/v1/xs/x")
			if err == nil {
				u := &unstructured.Unstructured{}
				_ = u.UnmarshalJSON(got)
				runtime.KeepAlive(u)
			}
			stop()
			took, most := int64(*peak)-int64(before.HeapAlloc), int64(8*len(text)+8<<20)
			t.Logf("%s: %d KiB, peak %d KiB of %d, error %v", name, len(text)>>10, took>>10, most>>10, err)
			if took > most {
				t.Errorf("LIM-2/%s: %d bytes took %d at their peak, want %d at most", name, len(text), took, most)
			}
		}
	}
}

// watchHeap samples the heap until it is stopped.
func watchHeap() (*uint64, func()) {
	peak, end, ended := new(uint64), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*peak = max(*peak, m.HeapAlloc)
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return peak, func() { close(end); <-ended }
}

// Honest answers pass: those of the library's own types, with all that API servers add.
func TestHonestAnswersPass(t *testing.T) {
	managed := `"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":` +
		`{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{}}}}}}}}]`
	deployment := `{"metadata":{"name":"deployment-%d","namespace":"default","uid":"0df28fbd-5f5f-11e8-bc74-36e6bb280816","resourceVersion":"1","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"a"},` + managed + `},` +
		`"spec":{"replicas":1,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"a","image":"registry.example.org/image:v1","resources":{"requests":{"cpu":"10m"}}}]}}},"status":{"replicas":1}}`
	var items []string
	for i := range 500 {
		items = append(items, fmt.Sprintf(deployment, i))
	}
	list := []byte(`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Join(items, ",") + `]}`)
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(list, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := kruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kruntime.ContentTypeProtobuf)
	protobuf, err := kruntime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Group: "apps", Version: "v1"}), typed)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q        question
		protobuf bool
		body     []byte
	}{
		"a page of types in protobuf": {question{accept: protobufFirst, limit: 500}, true, protobuf},
		"a page of types in JSON":     {question{accept: protobufFirst, limit: 500}, false, list},
		"a page in pieces":            {question{accept: "application/json", limit: 500, pieces: true}, false, list},
		"a page of maps":              {question{accept: "application/json", limit: 500}, false, list},
	} {
		began := time.Now()
		cost, err := NewTypes().cost(&c.q, c.protobuf, c.body)
		t.Logf("%s: %d KiB, %.1f times that, %s, %v", name, len(c.body)>>10, float64(cost)/float64(len(c.body)), time.Since(began), err)
		if err != nil {
			t.Errorf("LIM-2/%s: %v", name, err)
		}
	}
	var u metav1.PartialObjectMetadataList
	if err := json.Unmarshal(list, &u); err != nil || len(slices.Collect(Items(list))) != 500 {
		t.Errorf("LIM-2: %v", err)
	}
}

// BenchmarkScan measures the scan of a page.
func BenchmarkScan(b *testing.B) {
	text := []byte(`{"kind":"XList","apiVersion":"x.io/v1","items":[` + strings.TrimSuffix(strings.Repeat(`{"metadata":{"name":"a","labels":{"app":"a"}},"data":{"key":"some value of some length"}},`, 500), ",") + `]}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := walk(text, nil, false); err != nil {
			b.Fatal(err)
		}
	}
}
