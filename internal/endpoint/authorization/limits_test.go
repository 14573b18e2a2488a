package authorization

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
)

// TestReviewsAtOnce: a bounded number of decisions is made at a time, and more are refused with a reason.
func TestReviewsAtOnce(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	h := New(Options{Log: logr.Discard(), Authorizer: decide(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		begun <- struct{}{}
		<-end
		return authorizer.DecisionAllow, "", nil
	})})
	ask := func() string {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(v1Review))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		return recorder.Body.String()
	}
	answers := make(chan string, decisionsAtOnce)
	for range decisionsAtOnce {
		go func() { answers <- ask() }()
		<-begun
	}
	expect.Contains(t, ask(), `"allowed":false,"evaluationError":"503 too many reviews at once"`, "one more")
	close(end)
	for range decisionsAtOnce {
		expect.Contains(t, <-answers, `"allowed":true`, "one of those")
	}
	go func() { <-begun }()
	expect.Contains(t, ask(), `"allowed":true`, "afterwards")
}

// TestValuesLimit: what has more values than any user is refused before it is decoded, which takes several times its size.
func TestValuesLimit(t *testing.T) {
	h := New(Options{Log: logr.Discard(), Authorizer: fixed(authorizer.DecisionAllow, "", nil)})
	for values, want := range map[int]string{60_000: `"allowed":true`, valuesLimit - 4: `"allowed":true`, valuesLimit - 3: `"allowed":false,"evaluationError":"413 a review may have 65536 values at most"`} {
		groups := strings.Repeat(`"a",`, values-1) + `"a"` // Four commas are around them.
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(typed(`"spec":{"user":"u","groups":[`+groups+`],"resourceAttributes":{}}`)))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, request)
		expect.Contains(t, recorder.Body.String(), want, "%d groups", values)
	}
}

// TestBuffersKept: the buffer of a large review is not used again.
func TestBuffersKept(t *testing.T) {
	h := New(Options{Log: logr.Discard(), Authorizer: fixed(authorizer.DecisionAllow, "", nil)})
	for range 10 {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(v1Review+strings.Repeat(" ", 1<<20)))
		request.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), request)
		if buffer := buffers.Get().(*bytes.Buffer); buffer.Cap() > bufferKept {
			t.Fatalf("a buffer of %d bytes is kept", buffer.Cap())
		}
	}
}

// TestHostileReviews: who reaches the port may send anything (T3-6, AE-9).
func TestHostileReviews(t *testing.T) {
	yamltest.RefusesCheaply(t, "T3-6/AE-9", []int{20 << 10, 60 << 10}, func(content []byte) error { return new(review).decode(content) })
}
