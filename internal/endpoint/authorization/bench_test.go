package authorization

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// BenchmarkReview is what the endpoint adds to a decision: reading, decoding, writing, without HTTP.
func BenchmarkReview(b *testing.B) {
	h := New(Options{Authorizer: fixed(authorizer.DecisionAllow, "", nil), Log: logr.Discard()})
	body := []byte(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{"creationTimestamp":null},"spec":{"resourceAttributes":{"namespace":"garden-p001","verb":"get","group":"","version":"v1","resource":"secrets","name":"shoot-00001.ca-cluster"},"user":"gardener.cloud:system:seed:seed-001","groups":["gardener.cloud:system:seeds","system:authenticated"]},"status":{"allowed":false}}`)
	reader := bytes.NewReader(body)
	request := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(reader))
	request.Header.Set("Content-Type", "application/json")
	request.ContentLength = int64(len(body))
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		h.ServeHTTP(nowhere{}, request)
	}
}

// nowhere takes answers.
type nowhere struct{}

func (nowhere) Header() http.Header            { return http.Header{} }
func (nowhere) Write(text []byte) (int, error) { return len(text), nil }
func (nowhere) WriteHeader(int)                {}
