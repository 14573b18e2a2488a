package authorization

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

type decide func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error)

func (d decide) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	return d(ctx, a)
}

func fixed(decision authorizer.Decision, reason string, err error) decide {
	return func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return decision, reason, err
	}
}

type unreadable struct{}

func (unreadable) Read([]byte) (int, error) { return 0, errors.New("fake-err") }

const (
	v1Answer   = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{`
	betaAnswer = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","metadata":{},"spec":{},"status":{`
	v1Review   = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u","resourceAttributes":{"verb":"get"}}}`
)

// typed is a review with these fields.
func typed(fields string) string {
	return `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",` + fields + `}`
}

func TestReviewAnswers(t *testing.T) {
	no, yes := fixed(authorizer.DecisionNoOpinion, "", nil), fixed(authorizer.DecisionAllow, "", nil)
	for name, c := range map[string]struct {
		handler     Options
		body        io.Reader
		noBody      bool
		contentType string
		want        string
	}{
		"AE-2, no body":                                {handler: Options{Authorizer: no}, noBody: true, want: v1Answer + `"allowed":false,"evaluationError":"422 request body is empty"}}`},
		"AE-3, unreadable":                             {handler: Options{Authorizer: no}, body: unreadable{}, contentType: "foo", want: v1Answer + `"allowed":false,"evaluationError":"400 fake-err"}}`},
		"AE-4, content type":                           {handler: Options{Authorizer: no}, body: strings.NewReader(v1Review), contentType: "foo", want: v1Answer + `"allowed":false,"evaluationError":"400 contentType=foo, expected application/json"}}`},
		"AE-4/no content type":                         {handler: Options{Authorizer: no}, body: strings.NewReader(v1Review), contentType: "-", want: v1Answer + `"allowed":false,"evaluationError":"400 contentType=, expected application/json"}}`},
		"B/content type with parameters":               {handler: Options{Authorizer: no}, body: strings.NewReader(v1Review), contentType: "application/json; charset=utf-8", want: v1Answer + `"allowed":false}}`},
		"B/content type with a parameter that is none": {handler: Options{Authorizer: no}, body: strings.NewReader(v1Review), contentType: "application/json; x", want: v1Answer + `"allowed":false,"evaluationError":"400 contentType=application/json; x, expected application/json"}}`},
		"AE-5, truncated":                              {handler: Options{Authorizer: no}, body: strings.NewReader("{"), want: v1Answer + `"allowed":false,"evaluationError":"400 couldn't get version/kind; json parse error: unexpected end of JSON input"}}`},
		"AE-12, error":                                 {handler: Options{Authorizer: fixed(authorizer.DecisionDeny, "reason", errors.New("fake-err"))}, want: v1Answer + `"allowed":false,"evaluationError":"500 fake-err"}}`},
		"AE-6/an authorizer answers":                   {handler: Options{Authorizer: fixed(authorizer.DecisionNoOpinion, "", nil)}, want: v1Answer + `"allowed":false}}`},
		"AE-7/v1beta1":                                 {handler: Options{Authorizer: yes}, body: strings.NewReader(strings.Replace(v1Review, "/v1", "/v1beta1", 1)), want: betaAnswer + `"allowed":true}}`},
		"AE-17/the fields and their order":             {handler: Options{Authorizer: yes}, want: `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":true}}`},
		"AE-19/a code and a text":                      {handler: Options{Authorizer: fixed(authorizer.DecisionNoOpinion, "", errors.New("other"))}, want: v1Answer + `"allowed":false,"evaluationError":"500 other"}}`},
		"B-1/an error denies":                          {handler: Options{Authorizer: fixed(authorizer.DecisionAllow, "", errors.New("fake-err")), DenyOnError: true}, want: v1Answer + `"allowed":false,"denied":true,"evaluationError":"500 fake-err"}}`},
		"AE-13, allow":                                 {handler: Options{Authorizer: fixed(authorizer.DecisionAllow, "reason", nil)}, want: v1Answer + `"allowed":true}}`},
		"AE-14, deny":                                  {handler: Options{Authorizer: fixed(authorizer.DecisionDeny, "deny", nil)}, want: v1Answer + `"allowed":false,"denied":true,"reason":"deny"}}`},
		"AE-15, no opinion":                            {handler: Options{Authorizer: fixed(authorizer.DecisionNoOpinion, `no "opinion" <b>`, nil)}, want: v1Answer + `"allowed":false,"reason":"no \"opinion\" \u003cb\u003e"}}`},
		"AE-16, unknown decision":                      {handler: Options{Authorizer: fixed(-1, "", nil)}, want: v1Answer + `"allowed":false,"evaluationError":"500 unexpected decision: -1"}}`},
		"AE-18, v1beta1":                               {handler: Options{Authorizer: no}, body: strings.NewReader(strings.Replace(v1Review, "/v1", "/v1beta1", 1)), want: betaAnswer + `"allowed":false}}`},
		"AE-9, PRC-44, an empty one":                   {handler: Options{Authorizer: yes}, body: strings.NewReader("{}"), want: v1Answer + `"allowed":false,"evaluationError":"422 request body has no apiVersion and kind"}}`},
		"AE-9, null":                                   {handler: Options{Authorizer: yes}, body: strings.NewReader("null"), want: v1Answer + `"allowed":false,"evaluationError":"422 request body is empty"}}`},
		"AE-9/null in YAML":                            {handler: Options{Authorizer: yes}, body: strings.NewReader("--- ~"), want: v1Answer + `"allowed":false,"evaluationError":"422 request body has no apiVersion and kind"}}`},
		"AE-9, an empty body":                          {handler: Options{Authorizer: yes}, body: strings.NewReader(" \n"), want: v1Answer + `"allowed":false,"evaluationError":"422 request body is empty"}}`},
		"AE-9/YAML":                                    {handler: Options{Authorizer: no}, body: strings.NewReader("apiVersion: authorization.k8s.io/v1beta1\nkind: SubjectAccessReview\n"), want: betaAnswer + `"allowed":false}}`},
		"B/another kind":                               {handler: Options{Authorizer: no}, body: strings.NewReader(`{"apiVersion":"bar/v1","kind":"Foo"}`), want: v1Answer + `"allowed":false,"evaluationError":"400 got kind \"Foo\" of version \"bar/v1\", expected SubjectAccessReview of authorization.k8s.io/v1 or authorization.k8s.io/v1beta1"}}`},
		"B/another kind of the same version":           {handler: Options{Authorizer: no}, body: strings.NewReader(`{"apiVersion":"authorization.k8s.io/v1","kind":"Foo"}`), want: v1Answer + `"allowed":false,"evaluationError":"400 got kind \"Foo\" of version \"authorization.k8s.io/v1\", expected SubjectAccessReview of authorization.k8s.io/v1 or authorization.k8s.io/v1beta1"}}`},
		"B/another version of the same kind":           {handler: Options{Authorizer: no}, body: strings.NewReader(`{"apiVersion":"bar/v1","kind":"SubjectAccessReview"}`), want: v1Answer + `"allowed":false,"evaluationError":"400 got kind \"SubjectAccessReview\" of version \"bar/v1\", expected SubjectAccessReview of authorization.k8s.io/v1 or authorization.k8s.io/v1beta1"}}`},
		"AE-9/no kind":                                 {handler: Options{Authorizer: no}, body: strings.NewReader(`{"apiVersion":"authorization.k8s.io/v1"}`), want: v1Answer + `"allowed":false,"evaluationError":"400 got kind \"\" of version \"authorization.k8s.io/v1\", expected SubjectAccessReview of authorization.k8s.io/v1 or authorization.k8s.io/v1beta1"}}`},
		"AE-9/no version":                              {handler: Options{Authorizer: no}, body: strings.NewReader(`{"kind":"SubjectAccessReview"}`), want: v1Answer + `"allowed":false,"evaluationError":"400 got kind \"SubjectAccessReview\" of version \"\", expected SubjectAccessReview of authorization.k8s.io/v1 or authorization.k8s.io/v1beta1"}}`},
		"AE-9/another type":                            {handler: Options{Authorizer: no}, body: strings.NewReader(`{"spec":{"user":5}}`), want: v1Answer + `"allowed":false,"evaluationError":"400 json: cannot unmarshal number into Go struct field reviewSpec.spec.user of type string"}}`},
		"AE-9/an unknown field":                        {handler: Options{Authorizer: no}, body: strings.NewReader(typed(`"spec":{"foo":5}`)), want: v1Answer + `"allowed":false}}`},
		"B-2, panic":                                   {handler: Options{Authorizer: decide(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { panic("boom") })}, want: v1Answer + `"allowed":false,"evaluationError":"500 panic: boom [recovered]"}}`},
		"AE-21/panic with an error": {handler: Options{Authorizer: decide(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			panic(errors.New("boom"))
		})}, want: v1Answer + `"allowed":false,"evaluationError":"500 panic: boom [recovered]"}}`},
		"B-3, not synced, not concerned": {handler: Options{Authorizer: yes, Ready: func() error { return errNotSynced }, Concerns: func(who user.Info) bool { return who.GetName() != "u" }, DenyOnError: true}, want: v1Answer + `"allowed":false}}`},
		"B-3, not synced, concerned":     {handler: Options{Authorizer: yes, Ready: func() error { return errNotSynced }, Concerns: func(who user.Info) bool { return who.GetName() == "u" }, DenyOnError: true}, want: v1Answer + `"allowed":false,"denied":true,"evaluationError":"503 not synced yet"}}`},
		"B-3/nobody is not concerned":    {handler: Options{Authorizer: yes, Concerns: func(user.Info) bool { return true }}, body: strings.NewReader(typed(`"spec":{"user":"u"}`)), want: v1Answer + `"allowed":false}}`},
		"B-3, not synced":                {handler: Options{Authorizer: fixed(authorizer.DecisionAllow, "", nil), Ready: func() error { return errNotSynced }}, want: v1Answer + `"allowed":false,"evaluationError":"503 not synced yet"}}`},
		"B/too large":                    {handler: Options{Authorizer: no}, body: bytes.NewReader(make([]byte, reviewLimit+1)), want: v1Answer + `"allowed":false,"evaluationError":"413 request entity is too large; limit is 3145728 bytes"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c.handler.Log = logr.Discard()
			if c.body == nil {
				c.body = strings.NewReader(v1Review)
			}
			request := httptest.NewRequest(http.MethodPost, "/", c.body)
			switch c.contentType {
			case "":
				request.Header.Set("Content-Type", "application/json")
			case "-":
			default:
				request.Header.Set("Content-Type", c.contentType)
			}
			if c.noBody {
				request.Body = nil
			}
			recorder := httptest.NewRecorder()
			New(c.handler).ServeHTTP(recorder, request)
			got := recorder.Body.String()
			expect.Equal(t, got, c.want+"\n", "got  %swant %s", got, c.want)
			expect.True(t, recorder.Code == http.StatusOK && recorder.Header().Get("Content-Type") == "application/json",
				"AE-21: status %d, content type %q", recorder.Code, recorder.Header().Get("Content-Type"))
		})
	}
}

func TestReviewBadBodies(t *testing.T) {
	h := New(Options{Authorizer: fixed(authorizer.DecisionAllow, "", nil), Log: logr.Discard()})
	for _, body := range []string{"[]", `"x"`, v1Review + "x", "{]", `{"spec":[]}`, "\x00"} {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		expect.Contains(t, recorder.Body.String(), `"allowed":false,"evaluationError":"400 `, "AE-9: %q", body)
	}
}

func TestReviewDeadline(t *testing.T) {
	h := New(Options{Log: logr.Discard(), Authorizer: decide(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
		deadline, limited := ctx.Deadline()
		expect.True(t, limited && time.Until(deadline) <= decisionBudget, "AE-1: there is no deadline of ten seconds")
		<-ctx.Done()
		return authorizer.DecisionNoOpinion, "", ctx.Err()
	})})
	ctx, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(v1Review)).WithContext(ctx)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	expect.Contains(t, recorder.Body.String(), `"evaluationError":"500 context deadline exceeded"`, "AE-1")
}

// attributesOf returns what an authorizer is asked for a review.
func attributesOf(t *testing.T, body string) authorizer.Attributes {
	t.Helper()
	var r review
	must.Succeed(t, r.decode([]byte(body)))
	return r.attributes()
}

func TestReviewAttributes(t *testing.T) {
	spec := `"spec":{"user":"u","uid":"i","group":["beta"],"groups":["one"],"extra":{"k":["v"]},"resourceAttributes":{"namespace":"n","verb":"get","group":"g","version":"v","resource":"r","subresource":"s","name":"m"},"nonResourceAttributes":{"path":"/x","verb":"post"}}`
	a := attributesOf(t, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",`+spec+`}`)
	if a.GetNamespace() != "n" || a.GetVerb() != "get" || a.GetAPIGroup() != "g" || a.GetAPIVersion() != "v" || a.GetResource() != "r" || a.GetSubresource() != "s" ||
		a.GetName() != "m" || !a.IsResourceRequest() || a.GetPath() != "" || a.GetUser().GetName() != "u" || a.GetUser().GetUID() != "i" || a.GetUser().GetExtra()["k"][0] != "v" {
		t.Errorf("AE-10, AE-11: got %+v", a)
	}
	for body, want := range map[string]string{
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",` + spec + `}`:                                         "one",
		`{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview",` + spec + `}`:                                    "beta",
		`{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","spec":{"groups":["x"],"resourceAttributes":{}}}`: "",
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"group":["x"],"resourceAttributes":{}}}`:       "",
	} {
		expect.Equal(t, strings.Join(attributesOf(t, body).GetUser().GetGroups(), " "), want, "AE-8: %s: got the groups", body)
	}
	if a := attributesOf(t, typed(`"spec":{"user":"u"}`)); a.GetUser() != nil || a.IsResourceRequest() {
		t.Errorf("AE-10: got %+v", a)
	}
	if a := attributesOf(t, typed(`"spec":{"user":"u","nonResourceAttributes":{"path":"/x","verb":"get"}}`)); a.IsResourceRequest() || a.GetPath() != "/x" || a.GetUser().GetName() != "u" {
		t.Errorf("AE-10: got %+v", a)
	}
}

func TestReviewSelectors(t *testing.T) {
	body := func(kind, selector string) string {
		return typed(`"spec":{"resourceAttributes":{"` + kind + `":` + selector + `}}`)
	}
	for selector, want := range map[string]string{
		`{"rawSelector":"a=1,b!=2"}`: "a=1,b!=2 <nil>",
		`{"rawSelector":"a=1","requirements":[{"key":"c","operator":"In","values":["x"]}]}`:                            "c=x <nil>",
		`{"requirements":[{"key":"c","operator":"In","values":["a","b"]},{"key":"d","operator":"In","values":["x"]}]}`: "d=x fieldSelectors do not yet support multiple values", // What cannot be parsed is told, the rest counts.
		`{"requirements":[{"key":"c","operator":"NotIn","values":["a"]}]}`:                                             "c!=a <nil>",
		`{"requirements":[{"key":"c","operator":"In"}]}`:                                                               " fieldSelectors in must have one value",
		`{"requirements":[{"key":"c","operator":"NotIn"}]}`:                                                            " fieldSelectors not in must have one value",
		`{"requirements":[{"key":"c","operator":"Exists"}]}`:                                                           " fieldSelectors do not yet support Exists",
		`{"requirements":[{"key":"c","operator":"Foo"}]}`:                                                              ` "Foo" is not a valid field selector operator`,
	} {
		requirements, err := attributesOf(t, body("fieldSelector", selector)).GetFieldSelector()
		var texts []string
		for _, r := range requirements {
			texts = append(texts, r.Field+string(r.Operator)+r.Value)
		}
		got := strings.Join(texts, ",") + " "
		if err == nil {
			got += "<nil>"
		} else {
			got += err.Error()
		}
		expect.Equal(t, got, want, "AE-11, fields: %s", selector)
	}
	for selector, want := range map[string]string{
		`{"rawSelector":"a=1,b"}`: "a=1,b <nil>",
		`{"rawSelector":"a=1","requirements":[{"key":"c","operator":"In","values":["x","y"]},{"key":"d","operator":"DoesNotExist"},{"key":"e","operator":"Foo"}]}`: `c in (x,y),!d "Foo" is not a valid label selector operator`,
		`{"requirements":[{"key":"c","operator":"In"},{"key":"d","operator":"Exists"}]}`:                                                                           "d values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
		`{"requirements":[{"key":"c","operator":"Exists"},{"key":"d","operator":"NotIn","values":["z"]}]}`:                                                         "c,d notin (z) <nil>",
	} {
		requirements, err := attributesOf(t, body("labelSelector", selector)).GetLabelSelector()
		var texts []string
		for _, r := range requirements {
			texts = append(texts, r.String())
		}
		got := strings.Join(texts, ",") + " "
		if err == nil {
			got += "<nil>"
		} else {
			got += err.Error()
		}
		expect.Equal(t, got, want, "AE-11, labels: %s", selector)
	}
	for _, kind := range []string{"labelSelector", "fieldSelector"} {
		a := attributesOf(t, body(kind, `{"rawSelector":"a in ("}`))
		_, labelErr := a.GetLabelSelector()
		_, fieldErr := a.GetFieldSelector()
		expect.False(t, labelErr == nil && fieldErr == nil, "AE-11: %s: no error for a selector that is none", kind)
	}
}

func FuzzReview(f *testing.F) {
	f.Add([]byte(v1Review))
	f.Add([]byte(`{"spec":{"resourceAttributes":{"labelSelector":{"requirements":[{"key":"c","operator":"In"}]}}}}`))
	f.Add([]byte("a: [b"))
	h := New(Options{Log: logr.Discard(), Authorizer: decide(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		_, _ = a.GetFieldSelector()
		_, _ = a.GetLabelSelector()
		return authorizer.DecisionNoOpinion, "", nil
	})})
	f.Fuzz(func(t *testing.T, body []byte) {
		request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		yamltest.Bounded(t, len(body), func() { h.ServeHTTP(recorder, request) })
		expect.Contains(t, recorder.Body.String(), `"allowed":false`)
	})
}
