package auditlog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
)

const (
	// chunkSize is the number of bytes that are scanned at once: some hundred events, which share one string.
	chunkSize = 256 << 10
	// lineLimit bounds a line. API servers take requests of 3 MiB, so that an event with request and response has some 6 MiB; they send webhooks
	// lists of up to 10 MiB. The eight chunks in memory have 96 MiB if each is such a line.
	lineLimit = 12 << 20
	// atOnce is the number of chunks that are in memory.
	atOnce = 8
	// namedLines is the number of malformed lines that are named.
	namedLines = 10
)

// Source is the input of a replay.
type Source struct {
	// Files are paths; - is Stdin. A file that begins as gzip does is decompressed.
	Files []string
	Stdin io.Reader
	// Keep reports whether an event is of interest. It is called by several goroutines.
	Keep func(*Event) bool
	// Progress, if it is set, is called now and then with how much was read.
	Progress func(Far)
}

// Far is the progress of reading.
type Far struct {
	// Lines counts the lines that were handed over.
	Lines int
	// Bytes counts the bytes of the files that were read, as they are stored; All is the size of the files, 0 if it is
	// unknown.
	Bytes, All int64
}

// Summary counts the lines that were read.
type Summary struct {
	// Lines that are not empty, and those of them that are no events.
	Lines, Malformed int
	// Bytes of all lines, decompressed.
	Bytes int64
	// Named are the first of them, with file, line number and fault; nothing of their content.
	Named []string
}

// ErrNothing reports a log without any event.
var ErrNothing = errors.New("no line is an audit event")

// chunk is some lines, with their events.
type chunk struct {
	file      string
	number    int
	text      string
	firstLine int
	// stored is the number of bytes of all files that were read when the chunk was complete.
	stored int64
	// dropped is the number of a line that is too long, 0 if there is none.
	dropped int

	events    []Event
	lines     int
	malformed []string
	bad       int
	done      chan struct{}
}

// Read hands over each event that is kept, in the order of the log.
func (s *Source) Read(each func(*Event) error) (Summary, error) {
	var summary Summary
	stop := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }) }
	defer end()
	workers := max(1, runtime.GOMAXPROCS(0))
	workers = min(workers, atOnce/2)
	all := s.size()
	jobs, order := make(chan *chunk, atOnce), make(chan *chunk, atOnce-2)
	failed := make(chan error, 1)
	go func() {
		defer close(order)
		defer close(jobs)
		failed <- s.split(func(c *chunk) bool {
			select {
			case order <- c:
			case <-stop:
				return false
			}
			select {
			case jobs <- c:
				return true
			case <-stop:
				close(c.done)
				return false
			}
		})
	}()
	for range workers {
		go func() {
			for c := range jobs {
				c.scan(s.Keep)
				close(c.done)
			}
		}()
	}
	for c := range order {
		<-c.done
		summary.add(c)
		if s.Progress != nil {
			s.Progress(Far{Lines: summary.Lines, Bytes: c.stored, All: all})
		}
		for i := range c.events {
			if err := each(&c.events[i]); err != nil {
				return summary, fmt.Errorf("%s: %w", c.events[i].Place(), err)
			}
		}
	}
	err := <-failed
	if err == nil && summary.Lines == summary.Malformed {
		err = ErrNothing
		if len(summary.Named) > 0 {
			err = fmt.Errorf("%w: %s", err, summary.Named[0])
		}
	}
	return summary, err
}

func (s *Summary) add(c *chunk) {
	s.Lines += c.lines
	s.Malformed += c.bad
	s.Bytes += int64(len(c.text))
	for _, named := range c.malformed {
		if len(s.Named) < namedLines {
			s.Named = append(s.Named, named)
		}
	}
}

// scan decodes the lines of a chunk.
func (c *chunk) scan(keep func(*Event) bool) {
	number := c.firstLine
	for rest := c.text; rest != ""; number++ {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		if strings.TrimSpace(line) == "" {
			continue
		}
		c.lines++
		err := decode(line, func(e *Event) {
			e.File, e.FileNumber, e.Line = c.file, c.number, number
			if keep(e) {
				c.events = append(c.events, *e)
			}
		})
		if err != nil {
			c.wrong(number, err)
		}
	}
	if c.dropped > 0 {
		c.lines++
		c.wrong(c.dropped, fmt.Errorf("is longer than %d MiB", lineLimit>>20))
	}
}

func (c *chunk) wrong(line int, err error) {
	c.bad++
	if len(c.malformed) < namedLines {
		c.malformed = append(c.malformed, fmt.Sprintf("%s line %d %s", c.file, line, err))
	}
}

// split cuts all files into chunks that end with a line.
func (s *Source) split(emit func(*chunk) bool) error {
	var read counted
	for number, name := range s.Files {
		numbered := func(c *chunk) bool {
			c.number, c.stored = number, read.bytes
			return emit(c)
		}
		if err := s.splitFile(name, &read, numbered); err != nil {
			return err
		}
	}
	return nil
}

// size is that of all files, 0 if one of them is none, as a pipe.
func (s *Source) size() (all int64) {
	for _, name := range s.Files {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return 0
		}
		all += info.Size()
	}
	return all
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	bytes int64
}

// Read implements io.Reader.
func (c *counted) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	c.bytes += int64(n)
	return n, err
}

func (s *Source) splitFile(name string, read *counted, emit func(*chunk) bool) error {
	shown, from := name, s.Stdin
	if name == "-" {
		shown = "stdin"
	} else {
		file, err := os.Open(name) //nolint:gosec // The caller names the file.
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	read.Reader = from
	buffered := bufio.NewReaderSize(read, chunkSize)
	var reader io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // A shorter file is not compressed.
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("%s: %w", shown, err)
		}
		reader = unzipped
	}
	l := lines{file: shown, from: reader, buffer: make([]byte, 0, chunkSize), line: 1}
	if err := l.split(emit); err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	return nil
}

// lines are those of a file.
type lines struct {
	file   string
	from   io.Reader
	buffer []byte
	line   int
	// skipping is set while a line is too long and its end has not come yet.
	skipping bool
}

func (l *lines) split(emit func(*chunk) bool) error {
	for {
		if len(l.buffer) == cap(l.buffer) {
			l.grow()
		}
		n, err := l.from.Read(l.buffer[len(l.buffer):cap(l.buffer)])
		l.buffer = l.buffer[:len(l.buffer)+n]
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return err
		}
		if !atEnd && len(l.buffer) < cap(l.buffer) {
			continue
		}
		if c := l.cut(atEnd); c != nil && !emit(c) || atEnd {
			return nil
		}
	}
}

// grow makes room for more of a line, or gives the line up.
func (l *lines) grow() {
	if cap(l.buffer) >= lineLimit {
		l.buffer, l.skipping = l.buffer[:0], true
		return
	}
	larger := make([]byte, len(l.buffer), min(2*cap(l.buffer), lineLimit))
	copy(larger, l.buffer)
	l.buffer = larger
}

// cut returns the lines that are whole, nil if there is none.
func (l *lines) cut(atEnd bool) *chunk {
	end := bytes.LastIndexByte(l.buffer, '\n') + 1
	if atEnd {
		end = len(l.buffer)
	}
	c := &chunk{file: l.file, done: make(chan struct{})}
	start := 0
	if l.skipping {
		first := bytes.IndexByte(l.buffer, '\n')
		if first < 0 && !atEnd {
			l.buffer = l.buffer[:0]
			return nil
		}
		if start = first + 1; first < 0 {
			start = end
		}
		c.dropped, l.skipping = l.line, false
		l.line++
	}
	if end == 0 || end <= start && c.dropped == 0 {
		return nil
	}
	c.text, c.firstLine = string(l.buffer[start:end]), l.line
	l.line += bytes.Count(l.buffer[start:end], []byte{'\n'})
	left := copy(l.buffer, l.buffer[end:])
	l.buffer = l.buffer[:left]
	if cap(l.buffer) > chunkSize && left < chunkSize { // One long line does not keep its room.
		l.buffer = append(make([]byte, 0, chunkSize), l.buffer...)
	}
	return c
}
