package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/espalier-project/espalier/internal/seedauthorizer/debug"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// pages: as many debug pages as somebody asks for take no more memory than two.
func pages(s *stage) error {
	shown := landscape.Options{Seeds: 10, Projects: 20, Shoots: 2000}
	if s.short {
		shown.Shoots = 400
	}
	g, err := s.admissionController(shown, map[string]any{"server": map[string]any{"enableDebugHandlers": true}}, nil)
	if err != nil {
		return err
	}
	// Browsers have connections of their own.
	browser, err := connect(g.process, s.dir+"/garden")
	if err != nil {
		return err
	}
	get := func(ctx context.Context, _ int) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, browser.url+debug.SeedPath+"?all&kind=Shoot", nil)
		if err != nil {
			return err
		}
		response, err := browser.client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	}
	several := func(n int) func() {
		return func() {
			var asking sync.WaitGroup
			for range n {
				asking.Go(func() { _ = get(s.ctx, 0) })
			}
			asking.Wait()
		}
	}
	several(2)() // What they leave behind as garbage is there then.
	two, err := allocated(g.process, several(2))
	if err != nil {
		return err
	}
	at := 40
	if s.short {
		at = 10
	}
	many, err := allocated(g.process, several(at))
	if err != nil {
		return err
	}
	s.goal(fmt.Sprintf("memory for %d pages at once (two: %.0f MiB)", at, two), many, max(1.5*two, two+32), " MiB")
	err = s.phases(g.process, g.decisions(), func(ctx context.Context, t *tally) { t.together(ctx, at, get) }, time.Second, 3*time.Second)
	s.goal("decisions refused", float64(s.during.honest.refused), 0, "")
	return err
}
