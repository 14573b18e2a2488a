package endpoint

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestHeaders: requests whose headers are longer than the port needs are refused; shorter ones are served.
func TestHeaders(t *testing.T) {
	for name, c := range map[string]struct{ limit, bytes, want int }{
		"LIM-3/within the limit":       {HeaderBytes, 15 << 10, 200},
		"LIM-3/beyond the limit":       {HeaderBytes, 20 << 10, 431},
		"LIM-3/a token":                {TokenHeaderBytes, 20 << 10, 200},
		"LIM-3/a token that is longer": {TokenHeaderBytes, 40 << 10, 431},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(nil)
			var err error
			if server.Config, err = NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), c.limit); err != nil {
				t.Fatal(err)
			}
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			connection, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			must.Succeed(t, err)
			defer func() { _ = connection.Close() }()
			expect.Equal(t, statusOf(t, connection, strings.Repeat("v", c.bytes)), c.want)
		})
	}
}

// statusOf sends a request with a header of a value, and returns the status of the answer.
func statusOf(t *testing.T, connection *tls.Conn, value string) int {
	t.Helper()
	_ = connection.SetDeadline(time.Now().Add(20 * time.Second))
	framer, block := send(t, connection), bytes.Buffer{}
	encode(&block, value)
	write(t, framer, 1, block.Bytes())
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return 431 // The connection ends if more frames of the headers follow.
		}
		if headers, is := frame.(*http2.MetaHeadersFrame); is {
			switch headers.PseudoValue("status") {
			case "200":
				return 200
			case "431":
				return 431
			}
			t.Fatalf("the status is %s", headers.PseudoValue("status"))
		}
	}
}

// send begins a connection of HTTP/2.
func send(t *testing.T, connection *tls.Conn) *http2.Framer {
	t.Helper()
	must.Succeed(t, expect.ErrorOf(connection.Write([]byte(http2.ClientPreface))))
	framer := http2.NewFramer(connection, connection)
	must.Succeed(t, framer.WriteSettings())
	return framer
}

func encode(block *bytes.Buffer, value string) {
	encoder := hpack.NewEncoder(block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/"}, {"content-length", "60000"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	for len(value) > 0 { // A single header that is longer than the limit ends the connection.
		part := value[:min(len(value), 1000)]
		value = value[len(part):]
		_ = encoder.WriteField(hpack.HeaderField{Name: "x-long", Value: part, Sensitive: true})
	}
}

// write sends headers in frames of their usual size.
func write(t *testing.T, framer *http2.Framer, stream uint32, block []byte) {
	t.Helper()
	first := block[:min(len(block), 16000)]
	err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(block) == len(first)})
	for rest := block[len(first):]; len(rest) > 0 && err == nil; {
		part := rest[:min(len(rest), 16000)]
		rest = rest[len(part):]
		err = framer.WriteContinuation(stream, len(rest) == 0, part)
	}
	if err != nil {
		t.Log(err) // The server may have ended the connection.
	}
}

// TestHeadersOfWaitingRequests: the headers of all requests of a connection that wait take a few times their limit, however long they are.
func TestHeadersOfWaitingRequests(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	var err error
	end := make(chan struct{})
	if server.Config, err = NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }), HeaderBytes); err != nil {
		t.Fatal(err)
	}
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	defer close(end)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	connection, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	must.Succeed(t, err)
	defer func() { _ = connection.Close() }()
	framer := send(t, connection)
	go func() {
		buffer := make([]byte, 4096)
		for {
			if _, err := connection.Read(buffer); err != nil {
				return
			}
		}
	}()
	var block bytes.Buffer
	for i := range streams {
		block.Reset()
		encode(&block, strings.Repeat("v", 15<<10))
		write(t, framer, uint32(2*i+1), block.Bytes())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took, most := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(3*streams*HeaderBytes); took > most {
		t.Errorf("LIM-3: %d requests take %d MiB, want %d MiB at most", streams, took>>20, most>>20)
	}
}
