package endpoint

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const (
	most  = 3 << 20
	small = `{"a":1}`
)

// sized are bodies of one size that may be large.
func sized(places int) Size {
	return Size{Bytes: most, Places: places, Grace: largeGrace, Turns: ratelimit.NewTurns(0)}
}

const largeGrace = 250 * time.Millisecond

// reader is an endpoint that only reads bodies, and says how that went.
type reader struct{ *Bodies }

func (r reader) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	_, release, err := r.Read(request.Context(), w, request, &bytes.Buffer{}, most)
	if err != nil {
		_, _ = fmt.Fprintf(w, "%d %s", StatusOf(err), err)
		return
	}
	defer release()
	_, _ = io.WriteString(w, "was read")
}

// endpoint serves a handler over TLS as the webhook server does, behind what measures it.
func endpoint(t *testing.T, handler http.Handler, http2 bool) (*http.Client, string) {
	t.Helper()
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "s"}, nil)
	server := httptest.NewUnstartedServer(nil)
	var err error
	if server.Config, err = NewServer(promhttp.InstrumentHandlerDuration(seconds, handler), HeaderBytes); err != nil {
		t.Fatal(err)
	}
	server.EnableHTTP2 = http2
	if !http2 {
		server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.Client(), server.URL
}

// overBoth runs a test over HTTP/1.1 and HTTP/2.
func overBoth(t *testing.T, test func(t *testing.T, http2 bool)) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) { test(t, http2) })
	}
}

func post(client *http.Client, url string, body io.Reader) (int, string, error) {
	response, err := client.Post(url, "application/json", body)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// trickle is a body that begins and never ends.
func trickle(t *testing.T, begin string) io.Reader {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	go func() { _, _ = io.WriteString(w, begin) }()
	return r
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		must.False(t, time.Now().After(until), "%v", what)
	}
}

func (c *buffer) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// patience is how many wait for a place.
func (c *buffer) patience() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting.Len()
}

// TestSlowBody: a body that trickles is given up after its time, and the client is told.
func TestSlowBody(t *testing.T) {
	b := NewBodies(sized(1))
	expect.True(t, b.patience <= 5*time.Second, "bodies are awaited for %s", b.patience)
	overBoth(t, func(t *testing.T, http2 bool) {
		for name, begin := range map[string]string{"small": "{", "large": "{" + strings.Repeat(" ", smallBody+10)} {
			bodies := NewBodies(sized(16))
			bodies.patience = 50 * time.Millisecond
			client, url := endpoint(t, reader{bodies}, http2)
			_, answer, err := post(client, url, trickle(t, begin))
			expect.True(t, err == nil && strings.Contains(answer, `408 the body did not come within 50ms`),
				"%s: got %s, %v", name, answer, err)
			eventually(t, "places are kept", func() bool { return bodies.awaited.size() == 0 && bodies.sizes[0].size() == 0 })
		}
	})
}

// TestSlowBodies: however many bodies are awaited, one that comes at once is answered; those that are awaited longest are given up.
func TestSlowBodies(t *testing.T) {
	overBoth(t, func(t *testing.T, http2 bool) {
		bodies := NewBodies(Size{Bytes: most, Places: 3, Grace: 20 * time.Millisecond, Turns: ratelimit.NewTurns(0)})
		bodies.awaited.limit = 5
		client, url := endpoint(t, reader{bodies}, http2)
		answers := make(chan string, 100)
		var slow sync.WaitGroup
		for i := range 20 {
			begin := "{"
			if i%2 == 1 {
				begin += strings.Repeat(" ", smallBody+10)
			}
			slow.Go(func() {
				_, answer, err := post(client, url, trickle(t, begin))
				answers <- fmt.Sprint(answer, err)
			})
		}
		for range 12 { // 20 bodies that never end, and places for 8 of them.
			// Over HTTP/1.1 a client that is still sending may find the connection closed before it has read the answer.
			if answer := <-answers; !strings.Contains(answer, `503 too many `) && (http2 || !strings.Contains(answer, "write tcp")) {
				t.Errorf("a body that is given up: got %s", answer)
			}
		}
		if _, answer, err := post(client, url, strings.NewReader(small)); err != nil || !strings.Contains(answer, `was read`) {
			t.Errorf("a small review beside slow ones: got %s, %v", answer, err)
		}
		// On a busy machine a large one may itself be one that comes slowly.
		eventually(t, "no large review is read beside slow ones", func() bool {
			_, answer, err := post(client, url, strings.NewReader(small+strings.Repeat(" ", 1<<20)))
			return err == nil && strings.Contains(answer, `was read`)
		})
		awaited, large := bodies.awaited.size(), bodies.sizes[0].size()
		expect.True(t, awaited <= 5 && large <= 3, "%d small and %d large bodies are awaited", awaited, large)
	})
}

// TestCostlyBodies: what is large or no JSON is bounded in size and number, and small JSON does not wait for it.
func TestCostlyBodies(t *testing.T) {
	bodies := NewBodies(sized(2))
	client, url := endpoint(t, reader{bodies}, false)
	yaml := "apiVersion: authorization.k8s.io/v1\nkind: SubjectAccessReview\nspec: {nonResourceAttributes: {path: /}}\n"
	comment := func(n int) string { return "#" + strings.Repeat("x", n) }
	for name, c := range map[string]struct{ body, want string }{
		"YAML":                   {yaml, `was read`},
		"YAML of usual size":     {yaml + comment(smallBody-len(yaml)-1), `was read`},
		"YAML that is too large": {yaml + comment(smallBody), `413 only JSON may have more than 65536 bytes`},
		"large JSON":             {small + strings.Repeat(" ", 2<<20), `was read`},
		"too large":              {small + strings.Repeat(" ", most), `413 request entity is too large; limit is 3145728 bytes`},
	} {
		for _, chunked := range []bool{false, true} {
			var body io.Reader = strings.NewReader(c.body)
			if chunked {
				body = io.MultiReader(body)
			}
			_, answer, err := post(client, url, body)
			// A client that goes on sending may miss the answer to what is too large.
			if (err != nil || !strings.Contains(answer, c.want)) && name != "too large" {
				t.Errorf("%s, chunked %v: got %s, %v, want %s", name, chunked, answer, err, c.want)
			}
		}
	}
	t.Run("places", func(t *testing.T) {
		places := make([]*place, 2) // Two are worked on, and have all places.
		for i := range places {
			g := &admitted{}
			g.complete()
			places[i] = bodies.sizes[0].join(g)
		}
		answered := make(chan string)
		go func() {
			_, answer, err := post(client, url, strings.NewReader(yaml))
			answered <- fmt.Sprint(answer, err)
		}()
		eventually(t, "nobody waits for a place", func() bool {
			return bodies.sizes[0].patience() == 1
		})
		_, answer, err := post(client, url, strings.NewReader(small))
		expect.True(t, err == nil && strings.Contains(answer, `was read`), "a small one meanwhile: got %s, %v", answer, err)
		bodies.sizes[0].leave(places[0])
		expect.Contains(t, <-answered, `was read`, "one that has waited")
		bodies.sizes[0].leave(places[1])
	})
	t.Run("turns", func(t *testing.T) {
		size := sized(1)
		bodies := NewBodies(size)
		_, end, err := size.Turns.Begin(t.Context()) // One is being worked on without end.
		must.Succeed(t, err)
		defer end()
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(yaml))
			if _, _, err := bodies.Read(ctx, httptest.NewRecorder(), request, &bytes.Buffer{}, most); StatusOf(err) != http.StatusServiceUnavailable {
				t.Errorf("got %v", err)
			}
			cancel()
		}
		expect.Equal(t, bodies.sizes[0].size(), 0, "places are kept")
	})
}

// TestPace: what is costly keeps its place and its turn for as long as it may have taken, and nothing else waits for that.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(Size{Bytes: most, Places: 1, Grace: time.Second, BytesPerSecond: 1 << 20, Turns: ratelimit.NewTurns(7)})
		read := func(body string) (time.Duration, error) {
			began := time.Now()
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			_, release, err := b.Read(t.Context(), httptest.NewRecorder(), request, &bytes.Buffer{}, most)
			if err == nil {
				time.Sleep(30 * time.Millisecond) // Decoding takes that long.
				release()
			}
			return time.Since(began), err
		}
		large := small + strings.Repeat(" ", 1<<19-len(small))
		for i, want := range []time.Duration{30 * time.Millisecond, 530 * time.Millisecond} {
			took, err := read(large)
			expect.True(t, err == nil && took == want, "the %d. large one: it took %s, %v, want %s", i+1, took, err, want)
		}
		took, err := read(small)
		expect.True(t, err == nil && took == 30*time.Millisecond, "a small one meanwhile: it took %s, %v", took, err)
		time.Sleep(time.Second)
		for i, want := range []time.Duration{30 * time.Millisecond, 240 * time.Millisecond} { // Seven times 30 ms are longer than what few bytes keep the place for.
			took, err := read("a: b")
			expect.True(t, err == nil && took == want, "the %d. of YAML: it took %s, %v, want %s", i+1, took, err, want)
		}
		time.Sleep(time.Second)
		expect.Equal(t, b.sizes[0].size(), 0, "places are kept")
	})
}

// TestNotGivenUpAfterwards: whose reading is over is left alone, also if it was given up before; the server may be done with its connection.
func TestNotGivenUpAfterwards(t *testing.T) {
	g := &admitted{response: http.NewResponseController(httptest.NewRecorder())}
	expect.True(t, g.giveUp(errGivenUp), "one that is read was not given up")
	g.end()
	expect.False(t, g.giveUp(errGivenUp), "one whose reading was over was given up")
}

// connection records whether it gets a deadline after the handler has returned, when it belongs to the server again.
type connection struct {
	http.ResponseWriter
	mu              sync.Mutex
	returned, wrong bool
}

// SetReadDeadline implements what http.ResponseController calls.
func (c *connection) SetReadDeadline(time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = c.wrong || c.returned
	return nil
}

// ended is a body whose connection ends after a time.
type ended time.Duration

// Read implements io.Reader.
func (e ended) Read([]byte) (int, error) {
	time.Sleep(time.Duration(e))
	return 0, io.ErrUnexpectedEOF
}

// TestConnectionAfterRead: a body that ends at the moment when it is given up leaves its connection alone afterwards.
func TestConnectionAfterRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodies(sized(1))
		for range 200 { // Either of the two may come first.
			c := &connection{ResponseWriter: httptest.NewRecorder()}
			request := httptest.NewRequest(http.MethodPost, "/", ended(bodyPatience))
			if _, _, err := b.Read(t.Context(), c, request, &bytes.Buffer{}, most); err == nil {
				t.Fatal("AE-3: a body that did not come was read")
			}
			c.mu.Lock()
			c.returned = true
			c.mu.Unlock()
			synctest.Wait()
			must.False(t, c.wrong, "AE-3: the connection got a deadline after its handler had returned")
		}
	})
}
