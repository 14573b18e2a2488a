package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// silent is a client of HTTP/2 that sends what it may and takes no answer.
type silent struct {
	connection *tls.Conn
	framer     *http2.Framer

	mu sync.Mutex
	// window is how much may still be sent on the connection, as the server tells it; news reports more.
	window int
	news   chan struct{}
	// open are the streams that the server has not given up; over says that it has closed the connection.
	open map[uint32]bool
	over bool
}

// firstWindow is that of a connection to begin with (RFC 9113, 6.9.2).
const firstWindow = 65535

func newSilent(connection *tls.Conn) *silent {
	return &silent{connection: connection, framer: http2.NewFramer(connection, connection), window: firstWindow, news: make(chan struct{}, 1), open: map[uint32]bool{}}
}

// follow reads what the server says, until the connection ends.
func (s *silent) follow() {
	for {
		frame, err := s.framer.ReadFrame()
		s.mu.Lock()
		switch f := frame.(type) {
		case *http2.WindowUpdateFrame:
			if f.StreamID == 0 {
				s.window += int(f.Increment)
			}
		case *http2.RSTStreamFrame:
			delete(s.open, f.StreamID)
		}
		s.over = err != nil
		s.mu.Unlock()
		if err != nil {
			return
		}
		select {
		case s.news <- struct{}{}:
		default:
		}
	}
}

// waiting counts the streams that the server still keeps open.
func (s *silent) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0
	}
	return len(s.open)
}

// send sends a review on a stream of its own.
func (s *silent) send(stream uint32, path string, body []byte) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}, {"content-type", "application/json"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.open[stream] = true
	s.mu.Unlock()
	if err := s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	const frame = 16 << 10
	for at := 0; at < len(body); at += frame {
		end := min(at+frame, len(body))
		if err := s.take(end - at); err != nil {
			return err
		}
		if err := s.framer.WriteData(stream, end == len(body), body[at:end]); err != nil {
			return err
		}
	}
	return nil
}

// take waits until so much may be sent.
func (s *silent) take(n int) error {
	late := time.After(2 * time.Second)
	for {
		s.mu.Lock()
		enough := s.window >= n
		if enough {
			s.window -= n
		}
		over := s.over
		s.mu.Unlock()
		switch {
		case over:
			return errors.New("the server has closed the connection")
		case enough:
			return nil
		}
		select {
		case <-s.news:
		case <-late:
			return errors.New("the server takes no more")
		}
	}
}

func (s *silent) close() {
	if s != nil {
		_ = s.connection.Close()
	}
}
