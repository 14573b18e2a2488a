// Package admittest has the laws that every mutating webhook keeps, so that a webhook's own tests are about its rule:
//
//   - twice is once: what a webhook has changed it leaves as it is;
//   - what the rule does not name stays as it was sent, unknown fields and large numbers included;
//   - all lists of containers are treated alike, unless the rule spares one;
//   - no body makes it panic.
//
// It is for tests only.
package admittest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/serve/admit"
)

// Pods are the laws of a webhook that changes Pods.
type Pods struct {
	Decide admit.Func
	// Touches are the places that the rule names, as JSON pointers; * stands for one index or key. What lies below them may change.
	Touches []string
	// Spares are the lists that the rule leaves alone, of containers, initContainers and ephemeralContainers.
	Spares []string
	// Draw puts what the webhook looks at into a Pod; nil adds nothing.
	Draw func(rt *rapid.T, pod map[string]any)
}

// lists are all lists of containers that a Pod has.
var lists = []string{"containers", "initContainers", "ephemeralContainers"}

// Check checks the laws with drawn Pods.
func (l Pods) Check(t *testing.T) {
	t.Helper()
	changed := 0
	rapid.Check(t, func(rt *rapid.T) {
		pod := drawPod(rt)
		if l.Draw != nil {
			l.Draw(rt, pod)
		}
		raw, err := json.Marshal(pod)
		if err != nil {
			rt.Fatal(err)
		}
		for _, law := range []func([]byte, *int) error{l.twice, l.touched, l.alike} {
			if err := law(raw, &changed); err != nil {
				rt.Fatalf("%s: %v", raw, err)
			}
		}
	})
	if changed == 0 {
		t.Error("no Pod was changed: Draw must put what the webhook looks at into some")
	}
	if response := Ask(l.Decide, admissionv1.Delete, nil); !response.Allowed || response.Patch != nil {
		t.Errorf("FM-1: a deletion is answered with %+v", response)
	}
}

// twice is the law that a webhook leaves what it has changed.
func (l Pods) twice(raw []byte, changed *int) error {
	once, admitted, err := Apply(l.Decide, raw)
	if err != nil || !admitted {
		return err
	}
	if string(once) != string(raw) {
		*changed++
	}
	response := Ask(l.Decide, admissionv1.Create, once)
	if !response.Allowed || response.Patch != nil {
		return fmt.Errorf("what became of it, %s, is answered with %+v and patched with %s", once, response.Result, response.Patch)
	}
	return nil
}

// touched is the law that only what the rule names changes.
func (l Pods) touched(raw []byte, _ *int) error {
	once, admitted, err := Apply(l.Decide, raw)
	if err != nil || !admitted {
		return err
	}
	before, err := leaves(raw)
	if err != nil {
		return err
	}
	after, err := leaves(once)
	if err != nil {
		return err
	}
	for path, value := range before {
		if now, found := after[path]; (!found || now != value) && !l.names(path, value) {
			return fmt.Errorf("%s was %s and is %q, which the rule does not name", path, value, now)
		}
	}
	for path, value := range after {
		if _, found := before[path]; !found && !l.names(path, value) {
			return fmt.Errorf("%s became %s, which the rule does not name", path, value)
		}
	}
	return nil
}

// names says whether the rule names a place. What is empty may be filled where something that it names comes below.
func (l Pods) names(path, value string) bool {
	return slices.ContainsFunc(l.Touches, func(touched string) bool {
		if value == "{}" || value == "[]" || value == "null" {
			n := min(len(strings.Split(path, "/")), len(strings.Split(touched, "/")))
			return below(path, strings.Join(strings.Split(touched, "/")[:n], "/"))
		}
		return below(path, touched)
	})
}

func below(path, pattern string) bool {
	steps, want := strings.Split(path, "/"), strings.Split(pattern, "/")
	if len(steps) < len(want) {
		return false
	}
	for i := range want {
		if want[i] != "*" && want[i] != steps[i] {
			return false
		}
	}
	return true
}

// alike is the law that the same container becomes the same in each list, or stays as it was where the rule spares the list.
func (l Pods) alike(raw []byte, _ *int) error {
	pod := map[string]any{}
	if err := decode(raw, &pod); err != nil {
		return err
	}
	spec := pod["spec"].(map[string]any)
	container := spec["containers"].([]any)[0].(map[string]any)
	for _, list := range lists {
		copied := maps.Clone(container)
		copied["name"] = list
		spec[list] = []any{copied}
	}
	sent, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	once, admitted, err := Apply(l.Decide, sent)
	if err != nil || !admitted {
		return err
	}
	if err := decode(once, &pod); err != nil {
		return err
	}
	spec = pod["spec"].(map[string]any)
	var like map[string]any
	first := ""
	for _, list := range lists {
		all, _ := spec[list].([]any)
		if len(all) != 1 {
			return fmt.Errorf("%s has %d containers of 1", list, len(all))
		}
		became := all[0].(map[string]any)
		delete(became, "name")
		want, of := like, first
		switch {
		case slices.Contains(l.Spares, list):
			want, of = container, "what was sent"
		case like == nil:
			like, first = became, list
			continue
		}
		delete(want, "name")
		if !reflect.DeepEqual(became, want) {
			return fmt.Errorf("the container of %s became %v, that of %s %v", list, became, of, want)
		}
	}
	return nil
}

// Fuzz is the law that no body makes a webhook panic, be it the body of the request or the object in a review.
func (l Pods) Fuzz(f *testing.F) {
	f.Helper()
	for _, pod := range []string{
		`{}`, `null`, `[]`, `{`, `{"spec":null}`, `{"spec":{"containers":[null]}}`, `{"spec":{"initContainers":[{}],"securityContext":null,"os":null}}`,
		`{"metadata":{"labels":null,"annotations":null,"ownerReferences":[null]},"spec":{"containers":[{"env":[null],"volumeMounts":[null]}],"tolerations":[null],"affinity":{},"volumes":[null]}}`,
	} {
		f.Add(true, []byte(pod))
		f.Add(false, []byte(pod))
	}
	h := admit.New(admit.Options{Decide: l.Decide, Log: logr.Discard()})
	f.Fuzz(func(t *testing.T, isObject bool, body []byte) {
		if isObject && json.Valid(body) {
			body = fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":%s}}`, body)
		}
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		review := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(recorder.Body.Bytes(), review); err != nil || review.Response == nil || review.Response.Result == nil {
			t.Fatalf("status %d, answer %s, %v", recorder.Code, recorder.Body, err)
		}
		if strings.HasPrefix(review.Response.Result.Message, "panic: ") {
			t.Error(review.Response.Result.Message)
		}
	})
}

// Ask asks a webhook about an object in the namespace "n", as the endpoint does.
func Ask(decide admit.Func, operation admissionv1.Operation, object []byte) *admissionv1.AdmissionResponse {
	return Respond(decide, admissionv1.AdmissionRequest{UID: "u", Namespace: "n", Operation: operation, Object: runtime.RawExtension{Raw: object}})
}

// Respond asks a webhook anything, as the endpoint does.
func Respond(decide admit.Func, request admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return admit.New(admit.Options{Decide: decide, Log: logr.Discard()}).Respond(context.Background(), &request)
}

// Apply returns what a webhook makes of an object that is created, and whether it admits it. A panic is an error.
func Apply(decide admit.Func, object []byte) (result []byte, admitted bool, err error) {
	response := Ask(decide, admissionv1.Create, object)
	switch {
	case strings.HasPrefix(response.Result.Message, "panic: "):
		return nil, false, fmt.Errorf("%s", response.Result.Message)
	case !response.Allowed || response.Patch == nil:
		return object, response.Allowed, nil
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		return nil, true, err
	}
	if result, err = patch.Apply(object); err != nil {
		return nil, true, fmt.Errorf("%s does not fit: %w", response.Patch, err)
	}
	return result, true, nil
}

// decode keeps numbers as they are written.
func decode(raw []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// leaves returns all values of an object by their paths; empty objects and lists are values, too.
func leaves(raw []byte) (map[string]string, error) {
	var tree any
	if err := decode(raw, &tree); err != nil {
		return nil, err
	}
	result := map[string]string{}
	var walk func(path string, value any) error
	walk = func(path string, value any) error {
		switch v := value.(type) {
		case map[string]any:
			for key, below := range v {
				if err := walk(path+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), below); err != nil {
					return err
				}
			}
			if len(v) > 0 {
				return nil
			}
		case []any:
			for i, below := range v {
				if err := walk(fmt.Sprintf("%s/%d", path, i), below); err != nil {
					return err
				}
			}
			if len(v) > 0 {
				return nil
			}
		}
		text, err := json.Marshal(value)
		result[path] = string(text)
		return err
	}
	return result, walk("", tree)
}
