package endpoint_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

type decide func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error)

func (d decide) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	return d(ctx, a)
}

const (
	// small is the size up to which a body is read at once.
	small    = 64 << 10
	v1Review = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u","resourceAttributes":{"verb":"get"}}}`
	v1Answer = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{`
)

// friend is the only user that the endpoints of these tests allow anything, so that an answer that allows must come from a body that
// names it.
const friend = "friend-7f3a"

// endpoints are both kinds of endpoints, as bytes see them.
func endpoints() *http.ServeMux {
	reviews := authorization.New(authorization.Options{Log: logr.Discard(), Authorizer: decide(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		_, _ = a.GetFieldSelector()
		_, _ = a.GetLabelSelector()
		if a.GetUser() != nil && a.GetUser().GetName() == friend {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})})
	admissions := admission.New(admission.Options{Log: logr.Discard(), Decide: admission.Decide(func(_ context.Context, r *admissionv1.AdmissionRequest) error {
		if r.UserInfo.Username == friend {
			return nil
		}
		return admission.Refuse(http.StatusForbidden, "no friend")
	})})
	mux := http.NewServeMux()
	mux.Handle("/review", reviews)
	mux.Handle("/admission", admissions)
	return mux
}

// panics collects what a server says of panics.
type panics struct {
	mu    sync.Mutex
	texts []string
}

func (p *panics) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("panic")) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.texts = append(p.texts, string(text))
	}
	return len(text), nil
}

func (p *panics) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.texts {
		t.Error(text)
	}
	p.texts = nil
}

func serveFuzzed(f *testing.F, http2 bool) (*httptest.Server, *panics) {
	p := &panics{}
	server := httptest.NewUnstartedServer(endpoints())
	server.Config.ErrorLog = log.New(p, "", 0)
	server.EnableHTTP2 = http2
	if http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	f.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server, p
}

func gzipped(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.Bytes()
}

// FuzzEndpoints posts bodies of any kind, with any headers about them, in one piece or chunked, over HTTP/1.1 and HTTP/2. Each is
// answered, the connection goes on, and nothing is allowed that the body does not say.
func FuzzEndpoints(f *testing.F) {
	const sar = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"` + friend + `","resourceAttributes":{"labelSelector":{"requirements":[{"key":"c","operator":"In"}]}}}}`
	const admissionReview = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","userInfo":{"username":"` + friend + `"}}}`
	for _, body := range [][]byte{
		[]byte(sar), []byte(admissionReview), []byte("null"), []byte("{"), []byte("a: [b"), []byte("apiVersion: authorization.k8s.io/v1\nkind: SubjectAccessReview\n"), {},
		gzipped(sar), gzipped(admissionReview), []byte("{" + strings.Repeat(" ", small)), []byte("- " + strings.Repeat("[a],", small/4)), []byte(strings.Repeat(`{"a":`, 5000)), []byte("\xef\xbb\xbf{}"), []byte("&a [*a]"),
	} {
		for i := range uint8(8) {
			f.Add(i, "application/json", "", body)
		}
		f.Add(uint8(0), "application/json; charset=utf-8", "gzip", body)
		f.Add(uint8(2), "application/yaml", "identity", body)
	}
	one, onePanics := serveFuzzed(f, false)
	two, twoPanics := serveFuzzed(f, true)
	f.Fuzz(func(t *testing.T, how uint8, contentType, encoding string, body []byte) {
		server, said := one, onePanics
		if how&1 != 0 {
			server, said = two, twoPanics
		}
		path := "/review"
		if how&2 != 0 {
			path = "/admission"
		}
		var reader io.Reader = bytes.NewReader(body)
		if how&4 != 0 {
			reader = io.MultiReader(reader) // Of unknown length, and so chunked.
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, reader)
		must.Succeed(t, err)
		request.Header.Set("Content-Type", contentType)
		if encoding != "" {
			request.Header.Set("Content-Encoding", encoding)
		}
		var response *http.Response
		yamltest.Bounded(t, len(body), func() { response, err = server.Client().Do(request) })
		if err != nil && strings.Contains(err.Error(), "invalid header field value") {
			return
		}
		if err != nil {
			if len(body) > small {
				return // HTTP/1.1 may close a connection on which too much comes.
			}
			t.Fatalf("no answer: %v", err)
		}
		defer func() { _ = response.Body.Close() }()
		answer, err := io.ReadAll(response.Body)
		expect.True(t, err == nil && len(answer) != 0, "status %d, answer %q, %v", response.StatusCode, answer, err)
		allows := bytes.Contains(answer, []byte(`"allowed":true`)) && !bytes.Contains(body, []byte(`"allowed":true`))
		// A name may be written with escapes.
		if allows && !bytes.Contains(body, []byte(friend)) && !bytes.ContainsAny(body, `\`) {
			t.Errorf("%q is answered with %s", body, answer)
		}
		if path == "/review" && (response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"kind":"SubjectAccessReview"`))) {
			t.Errorf("AE: status %d, answer %s", response.StatusCode, answer)
		}
		said.check(t)
	})
}

// FuzzConnections sends anything over a connection. The next connection is always served.
func FuzzConnections(f *testing.F) {
	post := func(headers, body string) []byte {
		return []byte("POST /review HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n" + headers + "\r\n" + body)
	}
	f.Add(post("Content-Length: 2\r\n", "{}"))
	f.Add(post("Content-Length: 200\r\n", "{}"))
	f.Add(post("Content-Length: -1\r\n", "{}"))
	f.Add(post("Content-Length: 99999999999\r\n", "{}"))
	f.Add(post("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"))
	f.Add(post("Transfer-Encoding: chunked\r\n", "ffffffff\r\n{}"))
	f.Add(post("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "0\r\n\r\nPOST /admission HTTP/1.1\r\n\r\n"))
	f.Add(post("Expect: 100-continue\r\nContent-Length: 2\r\n", "{}"))
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Add([]byte("GET /admission HTTP/1.0\r\n\r\n"))
	server, said := serveFuzzed(f, false)
	f.Fuzz(func(t *testing.T, sent []byte) {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		must.Succeed(t, err)
		_, _ = connection.Write(sent)
		_ = connection.(*net.TCPConn).CloseWrite()
		must.Succeed(t, connection.SetReadDeadline(time.Now().Add(20*time.Second)))
		var answer []byte
		yamltest.Bounded(t, len(sent), func() { answer, err = io.ReadAll(connection) })
		_ = connection.Close()
		if netErr := net.Error(nil); errors.As(err, &netErr) && netErr.Timeout() {
			t.Errorf("%q is answered with %q and then nothing", sent, answer)
		}
		if bytes.Contains(answer, []byte(`"allowed":true`)) && !bytes.Contains(sent, []byte(friend)) && !bytes.ContainsAny(sent, `\`) {
			t.Errorf("%q is answered with %q", sent, answer)
		}
		response, err := server.Client().Post(server.URL+"/review", "application/json", strings.NewReader(v1Review))
		must.Succeed(t, err, "after %q", sent)
		defer func() { _ = response.Body.Close() }()
		if next, err := io.ReadAll(response.Body); err != nil || string(next) != fmt.Sprintln(v1Answer+`"allowed":false}}`) {
			t.Errorf("after %q: got %s, %v", sent, next, err)
		}
		said.check(t)
	})
}
