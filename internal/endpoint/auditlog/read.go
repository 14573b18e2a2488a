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
	// chunkSize is the number of bytes that are decoded at once: some hundred events.
	chunkSize = 256 << 10
	// lineLimit bounds a line. API servers take requests of 3 MiB, so that an event with request and response has some 6 MiB; they send webhooks
	// lists of up to 10 MiB. The chunks in memory have some 100 MiB if each is such a line.
	lineLimit = 12 << 20
	// atOnce is the number of chunks that wait to be handed over.
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
	// Named are the first of them, with file, line number and fault; nothing of their content.
	Named []string
}

// ErrNothing reports a log without any event.
var ErrNothing = errors.New("no line is an audit event")

// chunk is some lines, with their events.
type chunk struct {
	file      string
	number    int
	lines     [][]byte
	firstLine int
	// stored is the number of bytes of all files that were read when the chunk was complete.
	stored int64

	events []Event
	// count is the number of lines that are not empty; malformed names those that are no events.
	count     int
	malformed []string
	done      chan struct{}
}

// Read hands over each event that is kept, in the order of the log. Each chunk is decoded by a goroutine of its own.
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

// split cuts all files into chunks of whole lines, until emit returns false.
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

// readLine returns the next line, or what is left without an end. Of a line that is too long it returns a part that is
// too long as well.
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
