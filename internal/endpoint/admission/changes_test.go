package admission

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// shape has forms of fields that Pods do not have.
type shape struct {
	metav1.TypeMeta `json:",inline"`
	NoTag           int64
	Ignored         string             `json:"-"`
	Zero            metav1.Time        `json:"zero,omitzero"`
	ZeroStruct      placedThing        `json:"zeroStruct,omitzero"`
	Quantity        *resource.Quantity `json:"quantity,omitempty"`
	Bytes           map[string][]byte  `json:"bytes,omitempty"`
	Texts           map[string]string  `json:"texts,omitempty"`
	Numbers         map[string]int64   `json:"numbers,omitempty"`
	Empty           []string           `json:"empty"`
	Named           []namedThing       `json:"named,omitempty"`
	Placed          []placedThing      `json:"placed,omitempty"`
	Below           *placedThing       `json:"below,omitempty"`
}

// namedThing has its name in an embedded struct.
type namedThing struct {
	metav1.ObjectMeta `json:",inline"`
	Text              string `json:"text,omitempty"`
}

// operations returns the patch of a change in JSON.
func operations[T any](t *testing.T, raw string, change func(*T)) string {
	t.Helper()
	request := &admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(raw)}}
	patch, err := Mutate(schema.GroupVersionKind{}, func(_ context.Context, object *T) error {
		change(object)
		return nil
	})(t.Context(), request)
	must.Succeed(t, err)
	return mustJSON(patch)
}

// TestShapes: each form of a field is compared by its values, and written as its type writes it (FM-6).
func TestShapes(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		change func(*shape)
		want   string
	}{
		"FM-6/a field of an embedded struct":       {`{}`, func(s *shape) { s.Kind, s.APIVersion = "B", "v1" }, `[{"op":"add","path":"/apiVersion","value":"v1"},{"op":"add","path":"/kind","value":"B"}]`},
		"FM-6/a field without a tag":               {`{"NoTag":1}`, func(s *shape) { s.NoTag = 2 }, `[{"op":"replace","path":"/NoTag","value":2}]`},
		"FM-6/a field that is always written":      {`{"NoTag":1}`, func(s *shape) { s.NoTag = 0 }, `[{"op":"replace","path":"/NoTag","value":0}]`},
		"FM-6/a field that is not written":         {`{}`, func(s *shape) { s.Ignored = "x" }, `null`},
		"FM-6/a zero time":                         {`{"zero":"2026-01-01T00:00:00Z"}`, func(s *shape) { s.Zero = metav1.Time{} }, `[{"op":"remove","path":"/zero"}]`},
		"FM-6/a zero struct":                       {`{"zeroStruct":{"text":"x"}}`, func(s *shape) { s.ZeroStruct.Text = "" }, `[{"op":"remove","path":"/zeroStruct"}]`},
		"FM-6/a new struct":                        {`{}`, func(s *shape) { s.ZeroStruct.Text = "x" }, `[{"op":"add","path":"/zeroStruct","value":{"text":"x"}}]`},
		"FM-5/the same quantity in another form":   {`{"quantity":"1000m"}`, func(s *shape) { s.Quantity = pointerTo(resource.MustParse("1")) }, `null`},
		"FM-6/another quantity":                    {`{"quantity":"1000m"}`, func(s *shape) { s.Quantity = pointerTo(resource.MustParse("2")) }, `[{"op":"replace","path":"/quantity","value":"2"}]`},
		"FM-6/entries of bytes":                    {`{"bytes":{"a":"YQ==","b":"Yg==","c":"Yw=="}}`, func(s *shape) { s.Bytes["b"] = []byte("x"); delete(s.Bytes, "c"); s.Bytes["d/"] = []byte("d") }, `[{"op":"replace","path":"/bytes/b","value":"eA=="},{"op":"remove","path":"/bytes/c"},{"op":"add","path":"/bytes/d~1","value":"ZA=="}]`},
		"FM-6/entries of texts":                    {`{"texts":{"c":"3","a":"1","b":"2"}}`, func(s *shape) { s.Texts["b"] = "x"; delete(s.Texts, "c"); s.Texts["A"] = "d" }, `[{"op":"add","path":"/texts/A","value":"d"},{"op":"replace","path":"/texts/b","value":"x"},{"op":"remove","path":"/texts/c"}]`},
		"FM-6/entries that are written as escapes": {`{"texts":{"\u0061":"1","b":"2"}}`, func(s *shape) { s.Texts["a"] = "x" }, `[{"op":"replace","path":"/texts/a","value":"x"}]`},
		"FM-6/entries of null":                     {`{"texts":null}`, func(s *shape) { s.Texts = map[string]string{"a": "1"} }, `[{"op":"replace","path":"/texts","value":{"a":"1"}}]`},
		"FM-6/the last entry goes":                 {`{"texts":{"a":"1"}}`, func(s *shape) { s.Texts = nil }, `[{"op":"remove","path":"/texts"}]`},
		"FM-6/entries of numbers":                  {`{"numbers":{"a":1,"b":2}}`, func(s *shape) { s.Numbers["b"] = 3; delete(s.Numbers, "a") }, `[{"op":"remove","path":"/numbers/a"},{"op":"replace","path":"/numbers/b","value":3}]`},
		"FM-6/a list of null that begins":          {`{"placed":null}`, func(s *shape) { s.Placed = []placedThing{{Text: "a"}} }, `[{"op":"replace","path":"/placed","value":[{"text":"a"}]}]`},
		"FM-6/a list that grows":                   {`{"placed":[{"text":"a","future":1}]}`, func(s *shape) { s.Placed = append(s.Placed, placedThing{"b"}, placedThing{"c"}) }, `[{"op":"add","path":"/placed/1","value":{"text":"b"}},{"op":"add","path":"/placed/2","value":{"text":"c"}}]`},
		"FM-6/a list that ends":                    {`{"placed":[{"text":"a"}]}`, func(s *shape) { s.Placed = nil }, `[{"op":"remove","path":"/placed"}]`},
		"FM-6/a list that is always written":       {`{"empty":["a"]}`, func(s *shape) { s.Empty = nil }, `[{"op":"remove","path":"/empty"}]`},
		"FM-6/an element that is null":             {`{"placed":[{"text":"a"},null]}`, func(s *shape) { s.Placed[0].Text, s.Placed[1].Text = "b", "c" }, `[{"op":"replace","path":"/placed/0/text","value":"b"},{"op":"replace","path":"/placed/1","value":{"text":"c"}}]`},
		"FM-6/elements that are told by places":    {`{"placed":[{"text":"a","future":1},{"text":"b","future":2}]}`, func(s *shape) { s.Placed[0].Text, s.Placed[1].Text = "b", "a" }, `[{"op":"replace","path":"/placed/0/text","value":"b"},{"op":"replace","path":"/placed/1/text","value":"a"}]`},
		"FM-6/elements that keep their names":      {`{"named":[{"name":"a","future":1},{"name":"b"}]}`, func(s *shape) { s.Named[0].Text = "x" }, `[{"op":"add","path":"/named/0/text","value":"x"}]`},
		"FM-6/elements with embedded names move":   {`{"named":[{"name":"a","future":1},{"name":"b","future":2}]}`, func(s *shape) { s.Named[0], s.Named[1] = s.Named[1], s.Named[0] }, `[{"op":"remove","path":"/named/0"},{"op":"add","path":"/named/1","value":{"name":"a","future":1}}]`},
		"FM-6/elements without names":              {`{"named":[{"name":"","text":"a"},{"name":"","text":"b"}]}`, func(s *shape) { s.Named = s.Named[1:] }, `[{"op":"remove","path":"/named/0"}]`},
		"FM-6/a struct that goes":                  {`{"below":{"text":"a"}}`, func(s *shape) { s.Below = nil }, `[{"op":"remove","path":"/below"}]`},
		"FM-6/a struct in the place of null":       {`{"below":null}`, func(s *shape) { s.Below = &placedThing{"a"} }, `[{"op":"replace","path":"/below","value":{"text":"a"}}]`},
		"FM-6/a key with a quotation mark":         {`{"texts":{"a":"1"}}`, func(s *shape) { s.Texts[`b"\`] = "é" }, `[{"op":"add","path":"/texts/b\"\\","value":"é"}]`},
		"FM-6/a key with a control character":      {`{"texts":{"a":"1"}}`, func(s *shape) { s.Texts["b\n"] = "2" }, `[{"op":"add","path":"/texts/b\n","value":"2"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, operations(t, c.raw, c.change), c.want)
		})
	}
}

// TestTypes: an object is of the kind that it is sent for, or says nothing of its kind (CW-5, FM-3).
func TestTypes(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"CW-5/nothing":             {`{}`, ""},
		"CW-5/the kind alone":      {`{"kind":"Pod"}`, ""},
		"CW-5/the version alone":   {`{"apiVersion":"v1"}`, ""},
		"CW-5/both":                {`{"kind":"Pod","apiVersion":"v1"}`, ""},
		"CW-5/escapes":             {`{"kind":"P\u006fd","apiVersion":"v1"}`, ""},
		"CW-5/another kind":        {`{"kind":"Node"}`, "unable to decode /, Kind=Node into *v1.Pod"},
		"CW-5/another version":     {`{"kind":"Pod","apiVersion":"v2"}`, "unable to decode /v2, Kind=Pod into *v1.Pod"},
		"CW-5/a version alone":     {`{"apiVersion":"apps/v1"}`, "unable to decode apps/v1, Kind= into *v1.Pod"},
		"CW-5/a kind of no text":   {`{"kind":1}`, "json: cannot unmarshal number into Go struct field TypeMeta.kind of type string"},
		"FM-3/null":                {`null`, "there is no content to decode"},
		"FM-3/another type of it":  {`{"kind":"Node","spec":[]}`, "unable to decode /, Kind=Node into *v1.Pod"},
		"FM-3/a field of its type": {`{"kind":"Pod","spec":[]}`, "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"},
	} {
		pod, err := Decode[corev1.Pod](pods, []byte(c.raw), "n")
		switch refusal := (*Refusal)(nil); {
		case c.want == "" && (err != nil || pod.Namespace != "n"):
			t.Errorf("%s: got %v, %v", name, pod, err)
		case c.want != "" && (!errors.As(err, &refusal) || refusal.Code != http.StatusBadRequest || refusal.Message != c.want):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	pod, err := Decode[corev1.Pod](pods, []byte(`{"metadata":{"namespace":"own"}}`), "n")
	expect.True(t, err == nil && pod.Namespace == "own", "CW-9: got %v, %v", pod, err)
	if _, err := Decode[thing](pods, []byte(`{"kind":"Node"}`), ""); err == nil || err.Error() != "unable to decode /, Kind=Node into *v1.Pod" {
		t.Errorf("CW-5/a type that was made for a rule: got %v", err)
	}
}

// TestReviewTypes: a review says that it is one, of a version that is known, or says nothing (CW-1).
func TestReviewTypes(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		wanted bool
	}{
		"CW-1/nothing":         {`{}`, true},
		"CW-1/v1":              {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, true},
		"CW-1/v1beta1":         {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}`, true},
		"CW-1/a kind alone":    {`{"kind":"AdmissionReview"}`, false},
		"CW-1/a version alone": {`{"apiVersion":"admission.k8s.io/v1"}`, false},
		"CW-1/another kind":    {`{"kind":"Review","apiVersion":"admission.k8s.io/v1"}`, false},
		"CW-1/another version": {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"}`, false},
	} {
		review, err := readReview([]byte(c.body))
		expect.True(t, (err == nil) == c.wanted && (review == nil) != c.wanted, "%s: got %v, %v", name, review, err)
	}
}

// TestTree: any JSON is decoded, with numbers as they are; other texts are refused with 400.
func TestTree(t *testing.T) {
	tree, err := Tree([]byte(`{"a":[123456789012345678901234567890.10,null,true]}`))
	diff := cmp.Diff(map[string]any{"a": []any{json.Number("123456789012345678901234567890.10"), nil, true}}, tree)
	expect.True(t, err == nil && diff == "", "got %v: %s", err, diff)
	if tree, err := Tree([]byte(`{`)); tree != nil || statusOf(err).Code != http.StatusBadRequest {
		t.Errorf("CW-2: got %v, %v", tree, err)
	}
}

// TestNames: an object is called by its own name, by what its name is to begin with, or by that of the request (WB-24).
func TestNames(t *testing.T) {
	pod := func(name, begins string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: begins}}
	}
	for name, c := range map[string]struct {
		asked  string
		object any
		want   string
	}{
		"WB-24/its own":              {"b", pod("a", "c"), "a"},
		"WB-24/that of the request":  {"b", pod("", "c"), "b"},
		"WB-24/what it begins with":  {"", pod("", "c"), "c"},
		"WB-24/no metadata":          {"b", &thing{Name: "a"}, "b"},
		"WB-24/nothing is said":      {"", pod("", ""), ""},
		"WB-24/neither has metadata": {"", &thing{}, ""},
	} {
		expect.Equal(t, nameOf(&admissionv1.AdmissionRequest{Name: c.asked}, c.object), c.want, "%s", name)
	}
}

// TestStatuses: no error is answered with a code that reads as an admission (FM-4).
func TestStatuses(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want metav1.Status
	}{
		"FM-4/an error without a code": {&apierrors.StatusError{ErrStatus: metav1.Status{Message: "m"}}, metav1.Status{Message: "m", Code: 500}},
		"FM-4/an error with a code":    {&apierrors.StatusError{ErrStatus: metav1.Status{Message: "m", Code: 409}}, metav1.Status{Message: "m", Code: 409}},
		"FM-4/a refusal":               {&Refusal{Code: 422, Reason: "Invalid", Message: "m"}, metav1.Status{Message: "m", Reason: "Invalid", Code: 422}},
		"FM-4/another error":           {errors.New("m"), metav1.Status{Message: "m", Code: 500}},
	} {
		expect.DeepEqual(t, statusOf(c.err), &c.want, "%s", name)
	}
}

// TestAnnotate: annotations of an answer are told with it; outside of a request there is nothing to annotate.
func TestAnnotate(t *testing.T) {
	decide := Decide(func(ctx context.Context, _ *admissionv1.AdmissionRequest) error {
		Annotate(ctx, "a", "1")
		Annotate(ctx, "b", "2")
		return nil
	})
	got := New(Options{Decide: decide, Log: logr.Discard()}).Respond(t.Context(), &admissionv1.AdmissionRequest{})
	expect.DeepEqual(t, got.AuditAnnotations, map[string]string{"a": "1", "b": "2"}, "SHD-5")
	Annotate(t.Context(), "a", "1")
}

// TestCut: a text that is too long ends with an ellipsis, and within no character.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"SHD-6/as long as may be":           {"abcdefgh", "abcdefgh"},
		"SHD-6/longer":                      {"abcdefghi", "abcde…"},
		"SHD-6/between characters":          {"abcääää", "abcä…"},
		"SHD-6/within a character":          {"abcdääää", "abcd…"},
		"SHD-6/within a character of four":  {"abc😀😀", "abc…"},
		"SHD-6/within the first of four":    {"ab😀😀😀", "ab…"},
		"SHD-6/no beginning of a character": {strings.Repeat("\x80", 9), "…"},
	} {
		expect.Equal(t, cut(c.text, 8), c.want, "%s", name)
	}
}

// TestBodies: a body that does not come in time is answered with 408, so that the failure policy decides; one that breaks off is refused.
func TestBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			body io.Reader
			code int
			text string
		}{
			"CW-2/late":   {lateReader{}, http.StatusRequestTimeout, "the body did not come within 5s"},
			"CW-2/broken": {iotest.ErrReader(errors.New("broken")), http.StatusOK, `"message":"broken","code":400`},
		} {
			if answer := post(New(Options{Decide: labelled, Log: logr.Discard()}), reviewType, c.body); answer.Code != c.code || !strings.Contains(answer.Body.String(), c.text) {
				t.Errorf("%s: got %d %s", name, answer.Code, answer.Body)
			}
		}
	})
	request := httptest.NewRequest(http.MethodPost, "/", nil)
	request.Body = nil
	answer := httptest.NewRecorder()
	New(Options{Decide: labelled, Log: logr.Discard()}).ServeHTTP(answer, request)
	expect.Contains(t, answer.Body.String(), "request body is empty", "CW-2/none: got %s", answer.Body)
}

// lateReader ends after a minute.
type lateReader struct{}

func (lateReader) Read([]byte) (int, error) {
	time.Sleep(time.Minute)
	return 0, io.EOF
}
