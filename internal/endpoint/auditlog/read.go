package auditlog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// chunkSize is the number of bytes that are decoded together: some hundred events.
	chunkSize = 256 << 10
	// lineLimit bounds a line. API servers accept requests of 3 MiB, so an event with request and response has some 6
	// MiB; lists for webhooks have up to 10 MiB. The chunks in memory have some 100 MiB if each is such a line.
	lineLimit = 12 << 20
	// atOnce is the number of chunks that wait to be processed.
	atOnce = 8
	// namedLines is the maximum number of malformed lines in the summary.
	namedLines = 10
)

// Source is the input of a replay.
type Source struct {
	// Files are paths; - is Stdin. Files with gzip's magic bytes are decompressed.
	Files []string
	Stdin io.Reader
	// Keep reports whether an event is relevant. Several goroutines call it.
	Keep func(*Event) bool
	// Progress, if set, is called from time to time with the progress so far.
	Progress func(Far)
}

// Far is the progress of reading.
type Far struct {
	// Lines counts the lines that were processed.
	Lines int
	// Bytes counts the stored bytes of the files that were read; All is the size of all files, 0 if unknown.
	Bytes, All int64
}

// Summary counts the lines that were read.
type Summary struct {
	// Lines are not empty; Malformed counts those that are not events.
	Lines, Malformed int
	// Named lists the first malformed lines, with file, line number and error, without content.
	Named []string
}

// ErrNothing is the error for a log without events.
var ErrNothing = errors.New("no line is an audit event")

type chunk struct {
	file      string
	number    int
	lines     [][]byte
	firstLine int
	// stored is the number of stored bytes of all files that were read up to the end of the chunk.
	stored int64

	events []Event
	// count is the number of lines that are not empty; malformed lists those that are not events.
	count     int
	malformed []string
	done      chan struct{}
}

// Read calls each with each event that is kept, in the order of the log. Each chunk is decoded by its own goroutine.
func (s *Source) Read(each func(*Event) error) (Summary, error) {
	var summary Summary
	order, stop, failed := make(chan *chunk, atOnce), make(chan struct{}), make(chan error, 1)
	defer close(stop)
	go func() {
		defer close(order)
		failed <- s.split(func(c *chunk) bool {
			go c.decode(s.Keep)
			select {
			case order <- c:
				return true
			case <-stop:
				return false
			}
		})
	}()
	all := s.size()
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
	s.Lines += c.count
	s.Malformed += len(c.malformed)
	s.Named = append(s.Named, c.malformed[:min(len(c.malformed), namedLines-len(s.Named))]...)
}

// decode decodes the lines of a chunk.
func (c *chunk) decode(keep func(*Event) bool) {
	defer close(c.done)
	for i, line := range c.lines {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		c.count++
		number := c.firstLine + i
		err := errTooLong
		if len(line) <= lineLimit {
			err = decode(line, func(e *Event) {
				e.File, e.FileNumber, e.Line = c.file, c.number, number
				if keep(e) {
					c.events = append(c.events, *e)
				}
			})
		}
		if err != nil {
			c.malformed = append(c.malformed, fmt.Sprintf("%s line %d %s", c.file, number, err))
		}
	}
	c.lines = nil
}

var errTooLong = fmt.Errorf("is longer than %d MiB", lineLimit>>20)

// split cuts all files into chunks of entire lines, until emit returns false.
func (s *Source) split(emit func(*chunk) bool) error {
	var read counted
	for number, name := range s.Files {
		if more, err := s.splitFile(name, number, &read, emit); err != nil || !more {
			return err
		}
	}
	return nil
}

func (s *Source) splitFile(name string, number int, read *counted, emit func(*chunk) bool) (more bool, err error) {
	shown := "stdin"
	read.Reader = s.Stdin
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // The caller names the file.
		if err != nil {
			return false, err
		}
		defer func() { _ = file.Close() }()
		shown, read.Reader = name, file
	}
	more, err = splitLines(read, func(c *chunk) bool {
		c.file, c.number, c.stored, c.done = shown, number, read.bytes, make(chan struct{})
		return emit(c)
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", shown, err)
	}
	return more, err
}

func splitLines(from io.Reader, emit func(*chunk) bool) (more bool, err error) {
	reader := bufio.NewReaderSize(from, chunkSize)
	if magic, _ := reader.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // A shorter file is not compressed.
		unzipped, err := gzip.NewReader(reader)
		if err != nil {
			return false, err
		}
		reader = bufio.NewReaderSize(unzipped, chunkSize)
	}
	for first, atEnd := 1, false; !atEnd; {
		c := &chunk{firstLine: first}
		for size := 0; !atEnd && size < chunkSize; {
			line, err := readLine(reader)
			if atEnd = errors.Is(err, io.EOF); err != nil && !atEnd {
				return false, err
			}
			c.lines = append(c.lines, line)
			size += len(line)
		}
		first += len(c.lines)
		if !emit(c) {
			return false, nil
		}
	}
	return true, nil
}

// readLine returns the next line, or the rest of a file without a final newline. Of a line beyond the limit it
// returns a part that is also beyond the limit.
func readLine(from *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		if len(line) <= lineLimit {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// size returns the size of all files, 0 if one of them is not a regular file.
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

// counted counts the bytes of a reader.
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
