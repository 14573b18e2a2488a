package target

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/must"
)

// slowAnswers holds back the first answer of discovery that was given.
type slowAnswers struct {
	http.RoundTripper
	given, go_ chan struct{}
	held       bool
}

func (s *slowAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(r)
	if strings.HasSuffix(r.URL.Path, "/apis/example.com/v1") && !s.held {
		s.held = true
		close(s.given)
		<-s.go_
	}
	return response, err
}

// A mapping ends with the CustomResourceDefinition that it was made from, also if that is seen before the answer is there.
func TestMappingOfALateAnswer(t *testing.T) {
	s, _ := newServer(t)
	s.serve(widgets, "widgets", false)
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	timedOut := &slowAnswers{RoundTripper: listener.Client().Transport, given: make(chan struct{}), go_: make(chan struct{})}
	client, err := NewClient(&rest.Config{Host: listener.URL, QPS: -1}, &http.Client{Transport: timedOut}, NewMetrics(prometheus.NewRegistry()))
	must.Succeed(t, err)
	asked := make(chan error)
	go func() {
		_, err := client.Scope(t.Context(), widgets)
		asked <- err
	}()
	<-timedOut.given
	// The definition is deleted, which a watch tells, and created anew, with namespaces.
	s.serve(widgets, "widgets", true)
	s.put(widgets, "n", "w", nil)
	client.mappings.forgetKind(widgets.GroupKind())
	close(timedOut.go_)
	must.Succeed(t, <-asked)
	for range 3 {
		if _, err := client.Get(t.Context(), widgets, "n", "w"); err != nil {
			t.Errorf("it is there, and counts as gone (%t): %v", Gone(err), err)
		}
	}
}
