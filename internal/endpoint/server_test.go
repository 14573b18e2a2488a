package endpoint

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// oneConnection serves a handler, and returns a client that has one HTTP/2 connection for everything, as kube-apiserver has for all webhooks of a host.
func oneConnection(t *testing.T, handler http.Handler) (*http.Client, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	var err error
	if server.Config, err = NewServer(handler, HeaderBytes); err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		n := connections.Load()
		expect.Equal(t, n, 1, "there were %d connections", n)
	})
	client := server.Client()
	client.Transport.(*http.Transport).MaxConnsPerHost = 1
	return client, server.URL
}

// held is an endpoint that keeps all bodies of a size until the end, with their places.
type held struct {
	*Bodies
	size int
	here chan struct{}
	end  chan struct{}
}

func (h held) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body := &bytes.Buffer{}
	_, release, err := h.Read(request.Context(), w, request, body, most)
	if err != nil {
		_, _ = fmt.Fprintf(w, "%d %s", StatusOf(err), err)
		return
	}
	defer release()
	if body.Len() >= h.size {
		h.here <- struct{}{}
		<-h.end
	}
	_, _ = io.WriteString(w, "was read")
}

// TestOneConnection: while 64 large bodies have all places of their size or wait for one, small bodies and those of 100 KiB are read over the same
// connection, and all large ones are read in the end. All of the window that Go gives a connection by default would be used up by one of them.
func TestOneConnection(t *testing.T) {
	const large, others = 64, 50
	bodies := NewBodies(
		Size{Bytes: 256 << 10, Places: 4, Grace: time.Minute, Turns: ratelimit.NewTurns(0)},
		Size{Bytes: most, Places: 4, Grace: time.Minute, Turns: ratelimit.NewTurns(0)},
	)
	h := held{bodies, 1 << 20, make(chan struct{}), make(chan struct{})}
	client, url := oneConnection(t, h)
	_, answer, err := post(client, url, strings.NewReader(small))
	must.True(t, err == nil && answer == "was read", "the first one: got %s, %v", answer, err)
	var writers sync.WaitGroup
	for range large {
		writers.Go(func() {
			_, answer, err := post(client, url, strings.NewReader(small+strings.Repeat(" ", 2<<20)))
			expect.True(t, err == nil && answer == "was read", "a large one: got %s, %v", answer, err)
		})
	}
	eventually(t, "large bodies do not wait for places", func() bool { return bodies.sizes[1].patience() == large-4 })
	for name, padding := range map[string]int{"small": 1, "of 60 KiB": 60 << 10, "of 100 KiB": 100 << 10} {
		for range others {
			if _, answer, err := post(client, url, strings.NewReader(small+strings.Repeat(" ", padding))); err != nil || answer != "was read" {
				t.Fatalf("one that is %s beside %d large ones: got %s, %v", name, large, answer, err)
			}
		}
	}
	go func() {
		for range large {
			<-h.here
			h.end <- struct{}{}
		}
	}()
	writers.Wait()
}

// TestTooManyWait: what waits for a place is bounded, and the rest is refused at once, before it is read.
func TestTooManyWait(t *testing.T) {
	bodies := NewBodies(sized(1))
	bodies.sizes[0].mostQueued = 3
	h := held{bodies, 1 << 20, make(chan struct{}, 10), make(chan struct{}, 10)}
	client, url := oneConnection(t, h)
	answers := make(chan string, 10)
	for range 10 {
		go func() {
			_, answer, err := post(client, url, strings.NewReader(small+strings.Repeat(" ", 1<<20)))
			answers <- fmt.Sprint(answer, err)
		}()
	}
	for range 6 {
		expect.Equal(t, <-answers, "503 too many large reviews at once<nil>", "one too many")
	}
	for range 4 {
		h.end <- struct{}{}
	}
	for range 4 {
		expect.Equal(t, <-answers, "was read<nil>", "one that waits")
	}
}

// TestPlacesInOrder: requests get places in their order, also those whose body is given up in between.
func TestPlacesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &buffer{limit: 1, grace: time.Hour, mostQueued: 10}
		held := c.wait(t.Context(), &admitted{})
		held.complete()
		order := make(chan int, 10)
		for i := range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if i == 1 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			go func() {
				defer cancel()
				if p := c.wait(ctx, &admitted{}); p != nil {
					order <- i
					time.Sleep(time.Second)
					c.leave(p)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		c.leave(held)
		for _, want := range []int{0, 2, 3, 4} {
			expect.Equal(t, <-order, want)
		}
		time.Sleep(time.Minute)
		expect.True(t, c.size() == 0 && c.patience() == 0, "places are kept")
	})
}

// unreading sends requests over one HTTP/2 connection and gives no window for answers.
func unreading(connection net.Conn, requests int) error {
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(connection, connection)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		return err
	}
	for i := range requests {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/"}} {
			if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
				return err
			}
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
			return err
		}
	}
	return nil
}

// TestUnreadAnswers: answers that nobody reads are given up after their time, be it that the client gives its streams no window or that it does not
// read its connection at all, which is closed then.
func TestUnreadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		reads  bool
		within time.Duration
	}{
		"a client that gives no window":              {true, answerTime + time.Second},
		"a client that does not read its connection": {false, 2*stuckConnection + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const requests = 200
				var answering atomic.Int32
				handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					answering.Add(1)
					defer answering.Add(-1)
					Answering(w)
					_, _ = w.Write(make([]byte, 600<<10))
				})
				server, err := NewServer(handler, HeaderBytes)
				must.Succeed(t, err)
				client, accepted := net.Pipe()
				defer func() { _ = client.Close() }()
				served := make(chan struct{})
				go func() {
					defer close(served)
					transport().ServeConn(accepted, &http2.ServeConnOpts{BaseConfig: server, Handler: handler, Context: t.Context()}) //nolint:staticcheck // As transport.
				}()
				stop := make(chan struct{})
				go func() {
					if c.reads {
						_, _ = io.Copy(io.Discard, client)
						return
					}
					_, _ = io.ReadFull(client, make([]byte, 64)) // The settings and a part of a write, which then has its time anew.
					<-stop
				}()
				go func() { _ = unreading(client, requests) }() // Without success if the connection is closed before.
				time.Sleep(time.Second)
				must.True(t, answering.Load() != 0, "nothing is answered")
				time.Sleep(c.within)
				expect.Equal(t, answering.Load(), 0, "answers are still kept")
				close(stop)
				_ = client.Close()
				<-served
			})
		})
	}
}

// TestDeadline: an answer may take as long as the client waits, but for the time to get there, and never longer than the endpoint allows.
func TestDeadline(t *testing.T) {
	for query, want := range map[string]time.Duration{"": 10 * time.Second, "?timeout=10s": 9 * time.Second, "?timeout=2s": 1800 * time.Millisecond, "?timeout=30s": 10 * time.Second, "?timeout=x": 10 * time.Second, "?timeout=-1s": 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := Deadline(httptest.NewRequest(http.MethodPost, "/"+query, nil), 10*time.Second)
			defer cancel()
			expect.Equal(t, time.Until(expect.First(ctx.Deadline())), want, "T3-1: %q", query)
		})
	}
}
