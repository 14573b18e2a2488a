package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/espalier-project/espalier/internal/webhook/auditpolicy"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/fake"
)

// headers: requests whose headers are long are refused, and take no memory while they wait.
func headers(s *stage) error {
	g, err := s.admissionController(few, nil, nil)
	if err != nil {
		return err
	}
	const connections = 6
	var mu sync.Mutex
	var open []*silent
	defer func() {
		for _, c := range open {
			c.close()
		}
	}()
	err = s.phases(g.process, g.smallReviews(), func(ctx context.Context, t *tally) {
		var sending sync.WaitGroup
		for range connections {
			sending.Go(func() {
				t.ask(ctx, 0, func(context.Context, int) error {
					c, err := sendHeaders(strings.TrimPrefix(g.url, "https://"), auditpolicy.Path, 1000<<10)
					if c != nil {
						mu.Lock()
						defer mu.Unlock()
						open = append(open, c)
					}
					return err
				})
			})
		}
		sending.Wait()
		<-ctx.Done()
	}, time.Second, 5*time.Second)
	s.goal("honest reviews refused", float64(s.during.honest.refused), 0, "")
	s.goal("memory with 1,500 such requests, more than before", s.during.peak-s.before.peak, 32, " MiB")
	return err
}

// sendHeaders sends requests with a long header on all streams of a connection, whose bodies never come.
func sendHeaders(address, path string, size int) (*silent, error) {
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // It is our own process on loopback.
	if err != nil {
		return nil, err
	}
	client := newSilent(connection)
	go client.follow()
	_ = connection.SetWriteDeadline(time.Now().Add(patience))
	if _, err := connection.Write([]byte(http2.ClientPreface)); err != nil {
		return client, err
	}
	if err := client.framer.WriteSettings(); err != nil {
		return client, err
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0) // So that one block serves for all streams.
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}, {"content-length", "60000"}, {"x-long", strings.Repeat("v", size)},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return client, err
		}
	}
	const frame = 16000
	for i := range 250 {
		stream, rest := uint32(2*i+1), block.Bytes() //nolint:gosec // There are 250.
		first := rest[:min(frame, len(rest))]
		if client.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(first) == len(rest)}) != nil {
			return client, nil //nolint:nilerr // The server takes no more of it, which is fine.
		}
		for rest = rest[len(first):]; len(rest) > 0; {
			part := rest[:min(frame, len(rest))]
			rest = rest[len(part):]
			if client.framer.WriteContinuation(stream, len(rest) == 0, part) != nil {
				return client, nil //nolint:nilerr // The same.
			}
		}
	}
	return client, nil
}

// guesses: strangers that guess tokens do not keep a client with a token from the metrics.
func guesses(s *stage) error {
	reviewed := func(kind *fake.Kind, status func(spec fake.Object) fake.Object) *fake.Kind {
		kind.Answer = func(sent fake.Object) (fake.Object, error) {
			answer := maps.Clone(sent)
			spec, _ := sent["spec"].(fake.Object)
			answer["status"] = status(spec)
			return answer, nil
		}
		return kind
	}
	kinds := append(fake.BuiltIn(), fake.CustomKind("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true),
		reviewed(fake.BuiltInKind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", false), func(spec fake.Object) fake.Object {
			return fake.Object{"authenticated": spec["token"] == "good", "user": fake.Object{"username": "prometheus"}}
		}),
		reviewed(fake.BuiltInKind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", false), func(fake.Object) fake.Object {
			return fake.Object{"allowed": true}
		}))
	seed, err := harness.StartSimulated("seed", filepath.Join(s.dir, "seed"), kinds, "default")
	if err != nil {
		return err
	}
	s.close = append(s.close, seed.Stop)
	process, err := harness.Run(harness.ProcessOptions{
		Binary: filepath.Join(s.bin, "resource-manager"), Dir: filepath.Join(s.dir, "process"), Source: seed.Cluster, Target: seed.Cluster, AsAdmin: true,
		Config: map[string]any{"controllers": map[string]any{"clusterID": "hostile"}, "debugging": map[string]any{"authentication": map[string]any{"enabled": true}}},
	})
	if err != nil {
		return err
	}
	s.close = append(s.close, process.Kill)
	if err := process.AwaitReady(s.ctx); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 200, //nolint:gosec // It is our own process on loopback.
	}}
	scrape := func(ctx context.Context, token string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/metrics", process.Metrics), nil)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
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
	err = s.phases(process, func(ctx context.Context, t *tally) {
		t.paced(ctx, 100*time.Millisecond, func(ctx context.Context, _ int) error { return scrape(ctx, "good") })
	}, func(ctx context.Context, t *tally) {
		t.together(ctx, 120, func(ctx context.Context, i int) error {
			err := scrape(ctx, fmt.Sprintf("guess-%d", i))
			time.Sleep(10 * time.Millisecond)
			return err
		})
	}, time.Second, 6*time.Second)
	s.goal("scrapes refused", float64(s.before.honest.refused+s.during.honest.refused+s.after.honest.refused), 0, "")
	s.goal("guesses admitted", float64(len(s.during.hostile.took)-s.during.hostile.refused), 0, "")
	return err
}
