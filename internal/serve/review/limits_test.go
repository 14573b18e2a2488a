package review

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestReviewsAtOnce: 256 decisions are made at a time, and more are refused with a reason.
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
	answers := make(chan string, 300)
	for range 256 {
		go func() { answers <- ask() }()
		<-begun
	}
	if answer := ask(); !strings.Contains(answer, `"allowed":false,"evaluationError":"503 too many reviews at once"`) {
		t.Errorf("the 257th: got %s", answer)
	}
	close(end)
	for range 256 {
		if answer := <-answers; !strings.Contains(answer, `"allowed":true`) {
			t.Errorf("one of 256: got %s", answer)
		}
	}
	go func() { <-begun }()
	if answer := ask(); !strings.Contains(answer, `"allowed":true`) {
		t.Errorf("afterwards: got %s", answer)
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
