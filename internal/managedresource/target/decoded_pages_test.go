package target

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// saying answers each request with a status and a text, and remembers the request.
type saying struct {
	code int
	text string
	sent *http.Request
}

func (s *saying) RoundTrip(r *http.Request) (*http.Response, error) {
	s.sent = r
	return &http.Response{StatusCode: s.code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(s.text)), Request: r}, nil
}

// TestPagesByObject: the objects of a page are decoded one by one, and have the kind that their list names.
func TestPagesByObject(t *testing.T) {
	for name, c := range map[string]struct {
		code     int
		text     string
		want     []string
		listErr  func(error) bool
		eachErr  string
		proceeds string
	}{
		"objects without a kind": {
			200, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"next"},"items":[{"metadata":{"name":"a"}}, {"metadata":{"name":"b"}}]}`,
			[]string{"v1 ConfigMap a", "v1 ConfigMap b"}, nil, "", "next",
		},
		"objects with a kind":    {200, `{"items":[{"kind":"B","apiVersion":"x.io/v1","metadata":{"name":"a"}}],"kind":"AList","apiVersion":"x.io/v1"}`, []string{"x.io/v1 B a"}, nil, "", ""},
		"no objects":             {200, `{"kind":"AList","apiVersion":"x.io/v1","items":[]}`, nil, nil, "", ""},
		"null in place of them":  {200, `{"kind":"AList","apiVersion":"x.io/v1","items":null}`, nil, nil, "", ""},
		"an object that is null": {200, `{"kind":"AList","apiVersion":"x.io/v1","items":[null]}`, nil, nil, "an object of the list is malformed", ""},
		"no JSON":                {200, `{"kind":`, nil, func(err error) bool { return strings.Contains(err.Error(), "malformed") }, "", ""},
		"an expired page":        {410, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`, nil, apierrors.IsResourceExpired, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := &saying{code: c.code, text: c.text}
			client, err := NewClient(&rest.Config{Host: "http://target", QPS: -1}, &http.Client{Transport: answer}, NewMetrics(prometheus.NewRegistry()))
			must.Succeed(t, err)
			list, err := client.listByObject(&mapping{resource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "as"}, namespaced: true}, "n")(t.Context(), metav1.ListOptions{Limit: 500})
			expect.Equal(t, answer.sent.URL.String(), "http://target/apis/x.io/v1/namespaces/n/as?limit=500", "the request is for")
			if c.listErr != nil {
				expect.True(t, err != nil && c.listErr(err), "got %v", err)
				return
			}
			if err != nil || list.GetContinue() != c.proceeds {
				t.Fatalf("got %v, %q", err, list.GetContinue())
			}
			var got []string
			err = apimeta.EachListItem(list, func(o runtime.Object) error {
				u := o.(*unstructured.Unstructured)
				got = append(got, u.GetAPIVersion()+" "+u.GetKind()+" "+u.GetName())
				return nil
			})
			if (err != nil) != (c.eachErr != "") || err != nil && err.Error() != c.eachErr {
				t.Errorf("got %v, want %s", err, c.eachErr)
			}
			expect.DeepEqual(t, got, c.want)
		})
	}
}
