package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var pods = corev1.SchemeGroupVersion.WithKind("Pod")

// labelled is a webhook that sets a label.
var labelled = Mutate(pods, func(_ context.Context, pod *corev1.Pod) error {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels["a"] = pod.Namespace
	return nil
})

func failing(err error) Func {
	return Mutate(pods, func(context.Context, *corev1.Pod) error { return err })
}

func judging(errs field.ErrorList, err error) Func {
	return Validate(pods, func(_ context.Context, _, _ *corev1.Pod) (field.ErrorList, error) { return errs, err })
}

// ask is a review of v1 of an operation on a Pod.
func ask(operation, fields string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","namespace":"n","name":"x","operation":"` + operation + `"` + fields + `}}`
}

func post(h http.Handler, contentType string, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/", body)
	request.Header.Set("Content-Type", contentType)
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return recorder
}

func TestAnswers(t *testing.T) {
	const refused = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":false,"status":{"metadata":{},`
	const admitted = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true,"status":{"metadata":{},"code":200}`
	const unread = `{"response":{"uid":"","allowed":false,"status":{"metadata":{},`
	const empty = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"","allowed":false,"status":{"metadata":{},"message":"the review has no request","code":400}}}`
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "s")
	invalid := field.ErrorList{field.Required(field.NewPath("spec", "a"), "must be set"), field.Invalid(field.NewPath("spec", "b"), "x", "is wrong")}
	pod := `,"object":{"metadata":{"name":"x"}}`
	for name, c := range map[string]struct {
		decide      Func
		contentType string
		body        string
		want        string
	}{
		"CW-2, no body":                             {labelled, "", "", unread + `"message":"request body is empty","code":400}}}`},
		"CW-2, content type":                        {labelled, "text/plain", ask("CREATE", pod), unread + `"message":"contentType=text/plain, expected application/json","code":400}}}`},
		"CW-2/no JSON":                              {labelled, "", "{", unread + `"message":"couldn't get version/kind; json parse error: unexpected end of JSON input","code":400}}}`},
		"CW-2/another kind":                         {labelled, "", `{"apiVersion":"v1","kind":"Pod"}`, unread + `"message":"got kind \"Pod\" of version \"v1\", expected AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1","code":400}}}`},
		"PRC-41, CW-2, 8 MiB":                       {labelled, "", `{"x":"` + strings.Repeat("x", 8<<20) + `"}`, unread + `"message":"request entity is too large; limit is 7340032 bytes","code":413}}}`},
		"null is no request":                        {labelled, "", "null", empty},
		"a type alone is no request":                {labelled, "", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, empty},
		"a request of null":                         {labelled, "", `{"request":null}`, empty},
		"a request without an operation":            {labelled, "", `{"request":{}}`, empty},
		"CW-1, v1beta1":                             {labelled, "", strings.Replace(ask("CREATE", pod), "/v1", "/v1beta1", 1), strings.Replace(admitted, "/v1", "/v1beta1", 1) + `,"patch":"` + base64Of(`[{"op":"add","path":"/metadata/labels","value":{"a":"n"}}]`) + `","patchType":"JSONPatch"}}`},
		"CW-3/CW-4, a change":                       {labelled, "", ask("CREATE", pod), admitted + `,"patch":"` + base64Of(`[{"op":"add","path":"/metadata/labels","value":{"a":"n"}}]`) + `","patchType":"JSONPatch"}}`},
		"FM-6/CW-9, the namespace of the request":   {labelled, "", ask("CREATE", pod), admitted + `,"patch":"` + base64Of(`[{"op":"add","path":"/metadata/labels","value":{"a":"n"}}]`) + `","patchType":"JSONPatch"}}`},
		"FM-5/no change":                            {labelled, "", ask("UPDATE", `,"object":{"metadata":{"labels":{"a":"n"}}}`), admitted + `}}`},
		"FM-1, a deletion":                          {labelled, "", ask("DELETE", ""), admitted + `}}`},
		"FM-3/no object":                            {labelled, "", ask("CREATE", ""), refused + `"message":"there is no content to decode","code":400}}}`},
		"FM-3/an object that is none":               {labelled, "", ask("CREATE", `,"object":[]`), refused + `"message":"json: cannot unmarshal array into Go value of type v1.TypeMeta","code":400}}}`},
		"CW-5, another kind":                        {labelled, "", ask("CREATE", `,"object":{"kind":"ConfigMap","apiVersion":"v1"}`), refused + `"message":"unable to decode /v1, Kind=ConfigMap into *v1.Pod","code":400}}}`},
		"FM-4/an error denies with its text":        {failing(errors.New("no")), "", ask("CREATE", pod), refused + `"message":"no","reason":"Forbidden","code":403}}}`},
		"FM-4/an error of the API server":           {failing(fmt.Errorf("reading: %w", notFound)), "", ask("CREATE", pod), refused + `"status":"Failure","message":"secrets \"s\" not found","reason":"NotFound","details":{"name":"s","kind":"secrets"},"code":404}}}`},
		"a refusal has its code":                    {failing(&Refusal{Code: 422, Reason: "Invalid", Message: "m"}), "", ask("CREATE", pod), refused + `"message":"m","reason":"Invalid","code":422}}}`},
		"CW-2/a panic":                              {Mutate(pods, func(context.Context, *corev1.Pod) error { panic("boom") }), "", ask("CREATE", pod), refused + `"message":"panic: boom [recovered]","code":500}}}`},
		"an error of a function without a type":     {Decide(func(context.Context, *admissionv1.AdmissionRequest) error { return errors.New("no") }), "", ask("CREATE", ""), refused + `"message":"no","code":500}}}`},
		"FV-3/valid":                                {judging(nil, nil), "", ask("CREATE", pod), admitted + `}}`},
		"FV-1/connections":                          {judging(invalid, nil), "", ask("CONNECT", ""), admitted + `}}`},
		"FV-1/deletions":                            {judging(invalid, nil), "", ask("DELETE", `,"oldObject":{}`), admitted + `}}`},
		"FV-1/FV-2, a deletion of what":             {judging(invalid, nil), "", ask("DELETE", ``), refused + `"message":"there is no content to decode","code":400}}}`},
		"FV-1/another operation":                    {judging(nil, nil), "", ask("LOOK", pod), refused + `"message":"unknown operation \"LOOK\"","code":400}}}`},
		"FV-1/an update without what there was":     {judging(nil, nil), "", ask("UPDATE", pod), refused + `"message":"there is no content to decode","code":400}}}`},
		"FV-4/an error":                             {judging(nil, errors.New("no")), "", ask("CREATE", pod), refused + `"message":"no","reason":"Forbidden","code":403}}}`},
		"FV-4/two fields":                           {judging(invalid, nil), "", ask("CREATE", pod), refused + `"status":"Failure","message":"Pod \"x\" is invalid: [spec.a: Required value: must be set, spec.b: Invalid value: \"x\": is wrong]","reason":"Invalid","details":{"name":"x","kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value: must be set","field":"spec.a"},{"reason":"FieldValueInvalid","message":"Invalid value: \"x\": is wrong","field":"spec.b"}]},"code":422}}}`},
		"WB-24/a name that is still to be invented": {judging(invalid[:1], nil), "", strings.Replace(ask("CREATE", `,"object":{"metadata":{"generateName":"web-"}}`), `"name":"x",`, "", 1), refused + `"status":"Failure","message":"Pod \"web-\" is invalid: spec.a: Required value: must be set","reason":"Invalid","details":{"name":"web-","kind":"Pod","causes":[{"reason":"FieldValueRequired","message":"Required value: must be set","field":"spec.a"}]},"code":422}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.contentType == "" {
				c.contentType = "application/json"
			}
			answer := post(New(Options{Decide: c.decide, Log: logr.Discard()}), c.contentType, strings.NewReader(c.body))
			got := answer.Body.String()
			expect.Equal(t, got, c.want+"\n", "got  %swant %s", got, c.want)
			expect.True(t, answer.Code == http.StatusOK && answer.Header().Get("Content-Type") == "application/json",
				"CW-2: status %d, content type %q", answer.Code, answer.Header().Get("Content-Type"))
		})
	}
}

func base64Of(text string) string {
	quoted, err := json.Marshal([]byte(text))
	if err != nil {
		panic(err)
	}
	return strings.Trim(string(quoted), `"`)
}

// TestUndecodable: an object that is no JSON is refused with 400 (FM-3). No review has one, as it would be none itself.
func TestUndecodable(t *testing.T) {
	request := &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create}
	request.Object.Raw = []byte("{]")
	got := New(Options{Decide: labelled, Log: logr.Discard()}).Respond(t.Context(), request)
	expect.True(t, !got.Allowed && got.Result.Code == http.StatusBadRequest, "got %+v", got)
}

// TestExplain: a function may say why it admits; it admits nothing thereby.
func TestExplain(t *testing.T) {
	for want, err := range map[string]error{
		`"allowed":true,"status":{"metadata":{},"message":"because 1","code":200}`: nil,
		`"allowed":false,"status":{"metadata":{},"message":"no","code":500}`:       errors.New("no"),
	} {
		decide := Decide(func(ctx context.Context, _ *admissionv1.AdmissionRequest) error {
			Explain(ctx, "because %d", 1)
			return err
		})
		answer := post(New(Options{Decide: decide, Log: logr.Discard()}), "application/json", strings.NewReader(ask("CREATE", "")))
		expect.Contains(t, answer.Body.String(), want, "got %s", answer.Body)
	}
	Explain(context.Background(), "outside of a request")
}

// TestUnable: what the endpoint is not able to check has an HTTP status, so that the failure policy decides.
func TestUnable(t *testing.T) {
	synced := false
	h := New(Options{Decide: labelled, Ready: func() bool { return synced }, Log: logr.Discard()})
	body := ask("CREATE", `,"object":{}`)
	if answer := post(h, "application/json", strings.NewReader(body)); answer.Code != http.StatusServiceUnavailable || answer.Body.String() != "not synced yet\n" {
		t.Errorf("before it is complete: %d %s", answer.Code, answer.Body)
	}
	if answer := post(h, "application/json", strings.NewReader("null")); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"code":400`) {
		t.Errorf("what is no request is none at any time: %d %s", answer.Code, answer.Body)
	}
	synced = true
	if answer := post(h, "application/json", strings.NewReader(body)); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"allowed":true`) {
		t.Errorf("complete: %d %s", answer.Code, answer.Body)
	}
}

// TestWaiting (PRC-57): who waits until what a webhook reads is complete has no body in memory meanwhile, and keeps no other large review from
// its turn. A body that is no review does not make anybody wait.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := NewBodies()
		waits, complete := make(chan struct{}), make(chan struct{})
		waiting := New(Options{Decide: labelled, Bodies: bodies, Log: logr.Discard(), Ready: func() bool { close(waits); <-complete; return true }})
		other := New(Options{Decide: labelled, Bodies: bodies, Log: logr.Discard()})
		large := ask("CREATE", `,"object":{"spec":{"future":"`+strings.Repeat("x", 1<<17)+`"}}`)
		for _, contentType := range []string{"text/plain", ""} {
			if answer := post(waiting, contentType, strings.NewReader(large)); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"code":400`) {
				t.Errorf("content type %q: %d %s", contentType, answer.Code, answer.Body)
			}
		}
		body, answers := strings.NewReader(large), make(chan int)
		go func() { answers <- post(waiting, "application/json", body).Code }()
		<-waits
		expect.Equal(t, body.Len(), len(large), "%d bytes of a body are in memory that nobody can judge yet", len(large)-body.Len())
		begin := time.Now()
		if answer := post(other, "application/json", strings.NewReader(large)); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"allowed":true`) || time.Since(begin) > time.Second {
			t.Errorf("a large review of another webhook: %d %s after %v", answer.Code, answer.Body, time.Since(begin))
		}
		close(complete)
		expect.Equal(t, <-answers, http.StatusOK, "who has waited")
		time.Sleep(time.Minute) // Until all places are given back.
	})
}

// TestNoRoom: a body for which there is no room is answered with 503, also outside of a review.
func TestNoRoom(t *testing.T) {
	h := New(Options{Decide: labelled, Bodies: endpoint.NewBodies(endpoint.Size{Bytes: bodyLimit, Turns: ratelimit.NewTurns(0)}), Log: logr.Discard()})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(ask("CREATE", `,"object":{}`)+strings.Repeat(" ", 1<<20)))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	expect.True(t, recorder.Code == http.StatusServiceUnavailable && recorder.Body.String() == "too many large reviews at once\n",
		"got %d %s", recorder.Code, recorder.Body)
}

// TestTurnsEnd: the turn of a large review ends while it waits for the garden, and only time on the processor is followed by a rest: 100 updates of
// Shoots of 80 KiB that a garden answers in 50 ms are all answered, each well within the two seconds that the shortest registration gives.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		garden := ratelimit.NewQueue(100, ratelimit.Waiting)
		h := New(Options{Log: logr.Discard(), Decide: Decide(func(ctx context.Context, _ *admissionv1.AdmissionRequest) error {
			return garden.Do(ctx, func(context.Context) error {
				time.Sleep(50 * time.Millisecond)
				return nil
			})
		})})
		shoot := `{"spec":{"x":"` + strings.Repeat("x", 80<<10) + `"}}`
		body := ask("UPDATE", `,"object":`+shoot+`,"oldObject":`+shoot)
		began, answers := time.Now(), make(chan string, 100)
		for range cap(answers) {
			go func() {
				answer := post(h, "application/json", strings.NewReader(body))
				answers <- fmt.Sprint(answer.Code, strings.Contains(answer.Body.String(), `"allowed":true`))
			}()
		}
		for range cap(answers) {
			must.Equal(t, <-answers, "200 true", "T3-1")
		}
		took := time.Since(began)
		expect.True(t, took <= time.Second, "T3-1: all answers took %s", took)
		time.Sleep(time.Minute)
	})
}

// TestReviewsAtOnce: a bounded number of requests is worked on at a time, and more are told to come again.
func TestReviewsAtOnce(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := New(Options{Log: logr.Discard(), Decide: Decide(func(ctx context.Context, r *admissionv1.AdmissionRequest) error {
		expect.Equal(t, RequestFrom(ctx), r, "the context has another request")
		expect.True(t, expect.OK(ctx.Deadline()), "there is no deadline")
		begun <- struct{}{}
		<-end
		return nil
	})})
	answers := make(chan int, reviewsAtOnce)
	for range reviewsAtOnce {
		go func() { answers <- post(h, "application/json", strings.NewReader(ask("CREATE", ""))).Code }()
		<-begun
	}
	if answer := post(h, "application/json", strings.NewReader(ask("CREATE", ""))); answer.Code != http.StatusServiceUnavailable || answer.Body.String() != "too many reviews at once\n" {
		t.Errorf("one too many: %d %s", answer.Code, answer.Body)
	}
	close(end)
	for range reviewsAtOnce {
		expect.Equal(t, <-answers, http.StatusOK, "one of them")
	}
	expect.True(t, RequestFrom(context.Background()) == nil, "there is a request where there is none")
}

// TestMetrics: answers are counted and timed by webhook; two endpoints share what is registered once.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	panicking := New(Options{Name: "b", Metrics: NewMetrics(registry), Log: logr.Discard(), Decide: Decide(func(context.Context, *admissionv1.AdmissionRequest) error { panic("boom") })})
	h := New(Options{Name: "a", Metrics: NewMetrics(registry), Decide: labelled, Log: logr.Discard()})
	for _, body := range []string{ask("CREATE", `,"object":{}`), ask("CREATE", ""), "{"} {
		post(h, "application/json", strings.NewReader(body))
	}
	post(panicking, "application/json", strings.NewReader(ask("CREATE", "")))
	families, err := registry.Gather()
	must.Succeed(t, err)
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"controller_runtime_webhook_panics_total": 1, "espalier_admission_reviews_total 200 a": 1, "espalier_admission_reviews_total 400 a": 2,
		"espalier_admission_reviews_total 500 b": 1, "espalier_admission_review_duration_seconds a": 3, "espalier_admission_review_duration_seconds b": 1,
	}
	expect.DeepEqual(t, got, want, "CW-6")
}

// TestRejections: whoever invents namespaces makes the metric of refusals neither longer nor wider than a landscape does (OBS-20).
func TestRejections(t *testing.T) {
	registry := prometheus.NewRegistry()
	rejections := NewRejections(registry)
	refused := func(operation admissionv1.Operation, kind, namespace string) {
		rejections.Count(&admissionv1.AdmissionRequest{Operation: operation, Kind: metav1.GroupVersionKind{Kind: kind}, Namespace: namespace}, "Count Exceeded")
	}
	refused("UPDATE", "Secret", strings.Repeat("n", 1<<16))
	refused("CREATE", strings.Repeat("K", 254), "")
	refused("CREATE", "Secret", strings.Repeat("n", 254))
	refused("CREATE", strings.Repeat("K", 253), strings.Repeat("n", 253))
	for n := range 2 * rejectionsKept {
		refused("CREATE", "Secret", strconv.Itoa(n))
	}
	refused("CREATE", "Secret", "0")
	families, err := registry.Gather()
	must.Succeed(t, err)
	total, first, longest := 0.0, 0.0, 0
	metrics := families[0].GetMetric()
	for _, metric := range metrics {
		total += metric.GetCounter().GetValue()
		for _, label := range metric.GetLabel() {
			longest = max(longest, len(label.GetValue()))
			if label.GetName() == "namespace" && label.GetValue() == "0" {
				first = metric.GetCounter().GetValue()
			}
		}
	}
	expect.True(t, len(metrics) == rejectionsKept+2 && longest == 253 && total == 2*rejectionsKept+5 && first == 2,
		"%d series with up to %d bytes count %v refusals, %v of the first namespace", len(metrics), longest, total, first)
	(*Rejections)(nil).Count(&admissionv1.AdmissionRequest{}, "")
}

// FuzzAdmit posts bodies of any kind. None panics, and nothing is admitted that is no review of a Pod.
func FuzzAdmit(f *testing.F) {
	for _, body := range []string{ask("CREATE", `,"object":{"metadata":{"labels":{}}}`), ask("UPDATE", `,"object":{"metadata":{"labels":null}}`), "null", "{", `{"request":{"operation":"CREATE","object":{"spec":{"containers":[null]}}}}`} {
		f.Add([]byte(body))
	}
	h := New(Options{Decide: labelled, Log: logr.Discard()})
	f.Fuzz(func(t *testing.T, body []byte) {
		var answer *httptest.ResponseRecorder
		yamltest.Bounded(t, len(body), func() { answer = post(h, "application/json", bytes.NewReader(body)) })
		review := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(answer.Body.Bytes(), review); err != nil || review.Response == nil || review.Response.Result == nil {
			t.Fatalf("status %d, answer %s, %v", answer.Code, answer.Body, err)
		}
		if review.Response.Allowed && !bytes.Contains(body, []byte("operation")) && !bytes.Contains(body, []byte(`\`)) {
			t.Errorf("admitted")
		}
		expect.False(t, strings.HasPrefix(review.Response.Result.Message, "panic: "), "%v", review.Response.Result.Message)
	})
}

// TestLoggedName: the log of a refusal names the object, also before it has a name (WB-24).
func TestLoggedName(t *testing.T) {
	for sent, want := range map[string]string{
		`{"name":"x","object":{"metadata":{"generateName":"web-"}}}`: `"name"="x"`,
		`{"object":{"metadata":{"generateName":"web-"}}}`:            `"name"="web-"`,
		`{"object":{"metadata":{"generateName":1}}}`:                 `"name"=""`,
		`{}`: `"name"=""`,
	} {
		request, logged := &admissionv1.AdmissionRequest{}, ""
		must.Succeed(t, json.Unmarshal([]byte(sent), request))
		log := funcr.New(func(_, line string) { logged += line }, funcr.Options{})
		refuse := Decide(func(context.Context, *admissionv1.AdmissionRequest) error { return Refuse(http.StatusForbidden, "no") })
		New(Options{Decide: refuse, Log: log}).Respond(t.Context(), request)
		expect.Contains(t, logged, want, "WB-24: %s is logged", sent)
	}
}
