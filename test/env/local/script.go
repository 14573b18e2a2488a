package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// script is the output of one part of the tour. Parts run at the same time, and a script keeps its output until show is called, so that the
// output of each part stays together.
type script struct {
	mu   sync.Mutex
	to   io.Writer
	kept bytes.Buffer
}

// show prints the output up to now, and all further output at once.
func (s *script) show(to io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
	_, _ = s.kept.WriteTo(to)
}

func (s *script) heading(text string) { s.print("\n== %s\n", text) }

func (s *script) step(format string, arguments ...any) { s.print("   "+format+"\n", arguments...) }

func (s *script) print(format string, arguments ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.to
	if to == nil {
		to = &s.kept
	}
	_, _ = fmt.Fprintf(to, format, arguments...)
}
