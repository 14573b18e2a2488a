package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// gatekeeper measures admission-controller as a process in a garden with the largest landscape. Both sides of a turn share the garden, to which they
// write nothing.
func gatekeeper(ctx context.Context, b *bench) error {
	if b.gate == nil {
		if err := b.startGarden(ctx, largest); err != nil {
			return err
		}
	}
	g := b.gate
	if err := b.noteVersion(g.garden.REST); err != nil {
		return err
	}
	if err := g.startUp(ctx); err != nil {
		return err
	}
	defer g.process.Stop()
	g.report("admission-controller with 10,000 shoots: ", [4]string{"≤ 5", "≤ 5", "≤ 120", "≤ 220"})
	for _, part := range []func(context.Context) error{g.decisions, g.flips, g.updates} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startGarden starts a garden and fills it with a landscape.
func (b *bench) startGarden(ctx context.Context, o landscape.Options) error {
	garden, err := harness.StartGarden(ctx, b.folder, nil)
	if err != nil {
		return err
	}
	b.gate = &gate{bench: b, garden: garden, certificates: filepath.Join(b.folder, "ca.crt")}
	return fill(ctx, garden, o)
}

// stopGarden ends the garden of a turn, if it had one.
func (b *bench) stopGarden() {
	if b.gate != nil {
		b.gate.garden.Stop()
		b.gate = nil
	}
}

// fill makes a landscape, beside the API server: creating it there would take most of the scenario's time.
func fill(ctx context.Context, garden *harness.Garden, o landscape.Options) error {
	type numbered struct {
		landscape.Object
		number int
	}
	work := make(chan numbered, 100)
	failed := make(chan error, 1)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for object := range work {
				if err := harness.StoreObject(ctx, garden.Cluster, object.Object, object.number); err != nil {
					select {
					case failed <- fmt.Errorf("making %s: %w", object.Resource, err):
					default:
					}
				}
			}
		})
	}
	n := 0
	err := o.Generate(func(object landscape.Object) error {
		n++
		select {
		case work <- numbered{object, n}:
			return nil
		case err := <-failed:
			return err
		}
	})
	close(work)
	workers.Wait()
	select {
	case late := <-failed:
		err = errors.Join(err, late)
	default:
	}
	return err
}

type gate struct {
	*bench
	garden       *harness.Garden
	certificates string
	process      *harness.Process
	// admin lets the process do everything, for a garden that knows no rights.
	admin bool
	// ready counts the seconds that the last start took, starting what the process had used then, settled what it uses when it rests.
	ready             float64
	starting, settled harness.Usage
}

// startUp starts a process, waits until it is ready, and until it rests.
func (g *gate) startUp(ctx context.Context) error {
	g.processes++
	started := time.Now()
	config := map[string]any{"gardenClientConnection": map[string]any{"qps": -1}}
	if g.profile != "" {
		config["debugging"] = map[string]any{"enableProfiling": true}
	}
	var err error
	if g.process, err = g.garden.Run(harness.GardenProcessOptions{
		Binary: g.side.binaries["admission-controller"], Dir: filepath.Join(g.folder, fmt.Sprintf("gate-%d", g.processes)), Config: config, AsAdmin: g.admin || g.asAdmin(),
	}); err != nil {
		return err
	}
	if g.profile != "" {
		go g.saveProfile(g.process, filepath.Join(g.profile, fmt.Sprintf("gate-start-%d.pprof", g.processes)))
	}
	if err := awaitReady(ctx, g.process); err != nil {
		return err
	}
	g.ready = time.Since(started).Seconds()
	if g.starting, err = usageOf(g.process); err != nil {
		return err
	}
	if err := settle(ctx, g.process); err != nil {
		return err
	}
	g.settled, err = usageOf(g.process)
	return err
}

// report adds the figures of the last start, with targets of time, CPU time, settled memory and its peak.
func (g *gate) report(title string, targets [4]string) {
	g.add(title+"ready after", g.ready, "s", targets[0])
	g.add(title+"CPU time until ready", g.starting.CPU, "s", targets[1])
	g.add(title+"memory, settled", g.settled.RSS, "MiB", targets[2])
	g.add(title+"memory, anonymous", g.settled.Anonymous, "MiB", "")
	g.add(title+"memory, peak of the start", g.settled.Peak, "MiB", targets[3])
}

// decisionTime is the time that decisions of one kind are measured.
const decisionTime = 2 * time.Second

const seedsGroup = "gardener.cloud:system:seeds"

func gardenletOf(seed string) string { return "gardener.cloud:system:seed:" + seed }

func reviewOf(user, group, resource, namespace, name, apiGroup string) []byte {
	body := fmt.Sprintf(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{"creationTimestamp":null},"spec":{"resourceAttributes":{"namespace":%q,"verb":"get","group":%q,"version":"v1","resource":%q,"name":%q},"user":%q,"groups":[%q,"system:authenticated"]},"status":{"allowed":false}}`,
		namespace, apiGroup, resource, name, user, group)
	return fmt.Appendf(nil, "POST /webhooks/auth/seed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// decisions measures how many reviews a second are answered, and how long the slowest take.
func (g *gate) decisions(context.Context) error {
	o := largest
	secrets := make([][]byte, 1000)
	profiles := make([][]byte, 1000)
	for i := range secrets {
		namespace, name := o.ShootName(i * 7 % o.Shoots)
		seed := o.SeedOf(i * 7 % o.Shoots)
		secrets[i] = reviewOf(gardenletOf(seed), seedsGroup, "secrets", namespace, name+".ca-cluster", "")
		profiles[i] = reviewOf(gardenletOf(seed), seedsGroup, "cloudprofiles", "", landscape.CloudProfile, "core.gardener.cloud")
	}
	refused := [][]byte{reviewOf(gardenletOf(o.IdleSeed()), seedsGroup, "cloudprofiles", "", landscape.CloudProfile, "core.gardener.cloud")}
	nobody := [][]byte{reviewOf("somebody", "people", "secrets", "default", "x", "")}
	for _, c := range []struct {
		name     string
		requests [][]byte
		want     string
		targets  [2]string // with one connection and with 16
	}{
		{"Secret of a Shoot, allowed", secrets, `"allowed":true`, [2]string{"≥ 3500", "≥ 13000"}},
		{"CloudProfile of all, allowed", profiles, `"allowed":true`, [2]string{"≥ 3500", "≥ 13000"}},
		{"CloudProfile, refused", refused, `"allowed":false`, [2]string{"≥ 3500", "≥ 13000"}},
		{"no client of a seed", nobody, `"allowed":false`, [2]string{"", ""}},
	} {
		for i, connections := range []string{"1 connection", "16 connections"} {
			perSecond, p99, err := g.load(c.requests, c.want, []int{1, 16}[i], decisionTime)
			if err != nil {
				return err
			}
			g.add(fmt.Sprintf("decisions a second, %s: %s", connections, c.name), perSecond, "", c.targets[i])
			g.add(fmt.Sprintf("decisions, %s: %s, p99", connections, c.name), milliseconds(p99), "ms", "")
		}
	}
	u, err := usageOf(g.process)
	if err != nil {
		return err
	}
	g.add("memory after the decisions", u.RSS, "MiB", "≤ 140")
	return nil
}

// load sends requests over connections that stay open. The client does as little as it can: it shares the machine.
func (g *gate) load(requests [][]byte, want string, connections int, during time.Duration) (perSecond float64, p99 time.Duration, err error) {
	ca, err := os.ReadFile(g.certificates)
	if err != nil {
		return 0, 0, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	type result struct {
		took []time.Duration
		err  error
	}
	results := make(chan result, connections)
	end := time.Now().Add(during)
	for c := range connections {
		go func() {
			var r result
			r.took, r.err = g.connection(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13, ServerName: "localhost"}, requests, c*37, want, end)
			results <- r
		}()
	}
	var all []time.Duration
	for range connections {
		r := <-results
		if r.err != nil {
			return 0, 0, r.err
		}
		all = append(all, r.took...)
	}
	slices.Sort(all)
	return float64(len(all)) / during.Seconds(), all[len(all)*99/100], nil
}

func (g *gate) connection(config *tls.Config, requests [][]byte, first int, want string, end time.Time) ([]time.Duration, error) {
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", g.process.Web), config)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	reader := bufio.NewReaderSize(connection, 4096)
	var took []time.Duration
	body := make([]byte, 4096)
	for i := first; ; i++ {
		begin := time.Now()
		if begin.After(end) {
			return took, nil
		}
		if _, err := connection.Write(requests[i%len(requests)]); err != nil {
			return nil, err
		}
		length := 0
		for {
			header, err := reader.ReadSlice('\n')
			if err != nil {
				return nil, err
			}
			if len(header) <= 2 {
				break
			}
			if rest, found := bytes.CutPrefix(header, []byte("Content-Length: ")); found {
				for _, digit := range bytes.TrimSpace(rest) {
					length = length*10 + int(digit-'0')
				}
			}
		}
		if length > len(body) {
			return nil, fmt.Errorf("an answer of %d bytes", length)
		}
		if _, err := io.ReadFull(reader, body[:length]); err != nil {
			return nil, err
		}
		if !bytes.Contains(body[:length], []byte(want)) {
			return nil, fmt.Errorf("want %s, got %s", want, body[:length])
		}
		took = append(took, time.Since(begin))
	}
}

// flips measures the time from a Shoot's write until the decision about its Secret follows.
func (g *gate) flips(ctx context.Context) error {
	client, err := dynamic.NewForConfig(g.garden.REST)
	if err != nil {
		return err
	}
	web, err := g.garden.HTTPS()
	if err != nil {
		return err
	}
	namespace, name := largest.ShootName(0)
	shoots := client.Resource(schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}).Namespace(namespace)
	question := fmt.Appendf(nil, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"namespace":%q,"verb":"get","resource":"configmaps","name":"flip"},"user":%q,"groups":[%q]}}`,
		namespace, gardenletOf(largest.SeedOf(0)), seedsGroup)
	var took []time.Duration
	for i := range 300 {
		policy, want := "flip", `"allowed":true`
		if i%2 == 1 {
			policy, want = "audit-policy", `"allowed":false`
		}
		patch := fmt.Appendf(nil, `{"spec":{"kubernetes":{"kubeAPIServer":{"auditConfig":{"auditPolicy":{"configMapRef":{"name":%q}}}}}}}`, policy)
		if _, err := shoots.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
		written := time.Now()
		for {
			_, answer, err := g.process.Ask(web, http.MethodPost, "/webhooks/auth/seed", "application/json", question)
			if err != nil {
				return err
			}
			if strings.Contains(answer, want) {
				break
			}
			if time.Since(written) > 10*time.Second {
				return errors.New("the decision did not follow")
			}
		}
		took = append(took, time.Since(written))
	}
	g.add("time from a write of a Shoot until decisions change: median", milliseconds(quantile(took, 0.5)), "ms", "")
	g.add("time from a write of a Shoot until decisions change: p99", milliseconds(quantile(took, 0.99)), "ms", "")
	return nil
}

// updates measures the CPU time for changes of Shoots that change nothing in the graph, as most do.
func (g *gate) updates(ctx context.Context) error {
	client, err := dynamic.NewForConfig(g.garden.REST)
	if err != nil {
		return err
	}
	before, err := usageOf(g.process)
	if err != nil {
		return err
	}
	const changes = 10_000
	var next sync.Mutex
	done := 0
	var workers sync.WaitGroup
	failed := make(chan error, 16)
	for range 16 {
		workers.Go(func() {
			for {
				next.Lock()
				i := done
				done++
				next.Unlock()
				if i >= changes {
					return
				}
				namespace, name := largest.ShootName(i)
				// Each process of a turn gets other values: a patch that changes nothing makes no event.
				patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"lastOperation":{"progress":%d}}}`, i+changes*g.processes, i%100)
				if _, err := client.Resource(schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots"}).Namespace(namespace).
					Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	if err := settle(ctx, g.process); err != nil {
		return err
	}
	after, err := usageOf(g.process)
	if err != nil {
		return err
	}
	g.add("CPU time for 10,000 updates of Shoots", after.CPU-before.CPU, "s", "≤ 3")
	g.add("memory, at the end", after.RSS, "MiB", "")
	return nil
}
