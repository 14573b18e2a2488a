package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-project/espalier/test/cluster"
	"github.com/espalier-project/espalier/test/harness"
	"github.com/espalier-project/espalier/test/landscape"
)

// small is a landscape in which the endpoint, not the graph, is what costs.
var small = landscape.Options{Seeds: 10, Projects: 20, Shoots: 200}

// Parts of this executable that run as processes of their own, beside what is measured.
const (
	thoughtlessPart = "thoughtless"
	hostilePart     = "hostile"
)

// endpoint measures admission-controller as kube-apiserver speaks to it.
func endpoint(ctx context.Context, b *bench) error {
	return inSmallGarden(ctx, b, "endpoint", (*gate).overHTTP2)
}

// hostility measures admission-controller as somebody hostile speaks to it.
func hostility(ctx context.Context, b *bench) error {
	return inSmallGarden(ctx, b, "hostility", func(g *gate, ctx context.Context) error {
		if err := g.besideHostility(ctx, "/webhooks/auth/seed"); err != nil {
			return err
		}
		return g.besideHostility(ctx, "/webhooks/admission/seedrestriction")
	})
}

func inSmallGarden(ctx context.Context, b *bench, name string, measure func(*gate, context.Context) error) error {
	garden, err := harness.StartGarden(ctx, filepath.Join(b.dir, name), nil)
	if err != nil {
		return err
	}
	defer garden.Stop()
	if _, err := fill(ctx, garden, small); err != nil {
		return err
	}
	g := &gate{bench: b, garden: garden, certificates: filepath.Join(b.dir, name, "ca.crt")}
	if g.process, err = garden.Run(harness.GardenProcessOptions{
		Binary: filepath.Join(filepath.Dir(b.binary), "admission-controller"), Dir: filepath.Join(b.dir, name+"-process"),
		Config: map[string]any{"debugging": map[string]any{"enableProfiling": b.profile != ""}},
	}); err != nil {
		return err
	}
	defer g.process.Stop()
	if err := g.process.AwaitReady(ctx); err != nil {
		return err
	}
	return measure(g, ctx)
}

// profiled saves a profile of what comes next, if profiles are wanted.
func (g *gate) profiled(name string) {
	if g.profile != "" {
		go g.saveProfile(g.process, filepath.Join(g.profile, "endpoint-"+name+".pprof"))
	}
}

// part starts a part of this executable. It ends with the context.
func part(ctx context.Context, name string, arguments ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Clients that stand for other machines must not take the processor from the measured process.
	command := exec.CommandContext(ctx, "nice", append([]string{"-n", map[string]string{hostilePart: "19", thoughtlessPart: "0"}[name], self, "-part", name}, arguments...)...)
	command.Stderr = os.Stderr
	return command, command.Start()
}

// runPart is what a part does.
func runPart(name string, arguments []string) error {
	switch {
	case name == thoughtlessPart && len(arguments) == 2:
		return thoughtless(arguments[0], arguments[1])
	case name == hostilePart && len(arguments) == 2:
		return hostile(arguments[0], arguments[1])
	}
	return fmt.Errorf("no part %q with %d arguments", name, len(arguments))
}

// thoughtless reads reviews and answers them without looking: what TLS and HTTP/2 take, which is not ours.
func thoughtless(address, certificates string) error {
	answer := []byte(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":true}}` + "\n")
	server := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	})}
	return server.ListenAndServeTLS(filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"))
}

// caller returns a client of its own connection.
func (g *gate) caller() (*http.Client, error) {
	ca, err := os.ReadFile(g.certificates)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13, ServerName: "localhost"}}}, nil
}

// bodies are reviews about Secrets of Shoots that are allowed.
func bodies(o landscape.Options) [][]byte {
	var all [][]byte
	for i := range 100 {
		namespace, name := o.ShootName(i % o.Shoots)
		_, body, _ := bytes.Cut(reviewOf(gardenletOf(o.SeedOf(i%o.Shoots)), seedsGroup, "secrets", namespace, name+".ca-cluster", ""), []byte("\r\n\r\n"))
		all = append(all, body)
	}
	return all
}

func ask(client *http.Client, url string, body []byte, want string) (time.Duration, error) {
	started := time.Now()
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err == nil && !bytes.Contains(answer, []byte(want)) {
		err = fmt.Errorf("want %s, got %s", want, answer)
	}
	return time.Since(started), err
}

// askFor asks on so many streams of one connection, and returns how long each answer took.
func (g *gate) askFor(url string, streams int, during time.Duration) ([]time.Duration, error) {
	client, err := g.caller()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	questions := bodies(small)
	if _, err := ask(client, url, questions[0], `"allowed":true`); err != nil {
		return nil, err
	}
	return answers(streams, during, func(stream, i int) (time.Duration, error) {
		return ask(client, url, questions[(stream+i)%len(questions)], `"allowed":true`)
	})
}

// answers has so many ask at once, each one question after the other, and returns how long each answer took.
func answers(askers int, during time.Duration, ask func(asker, i int) (time.Duration, error)) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var asking sync.WaitGroup
	end := time.Now().Add(during)
	for asker := range askers {
		asking.Go(func() {
			var took []time.Duration
			var err error
			for i := 0; err == nil && time.Now().Before(end); i++ {
				var one time.Duration
				one, err = ask(asker, i)
				took = append(took, one)
			}
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), errors.Join(failed, err)
		})
	}
	asking.Wait()
	return all, failed
}

// startThoughtless starts a process that answers without thinking, with a certificate of a cluster, and returns its URL.
func (b *bench) startThoughtless(ctx context.Context, certify func(dir string) error) (command *exec.Cmd, url string, stop func(), err error) {
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return nil, "", nil, err
	}
	certificates := filepath.Join(b.dir, "thoughtless")
	if err := certify(certificates); err != nil {
		return nil, "", nil, err
	}
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0]))
	ctx, cancel := context.WithCancel(ctx)
	if command, err = part(ctx, thoughtlessPart, address, certificates); err != nil {
		cancel()
		return nil, "", nil, err
	}
	return command, "https://" + address + "/", func() { cancel(); _ = command.Wait() }, nil
}

// overHTTP2 compares decisions over HTTP/2 and TLS with a handler that answers without thinking, in turns.
func (g *gate) overHTTP2(ctx context.Context) error {
	command, theirs, stop, err := g.startThoughtless(ctx, g.garden.ServingCertificate)
	if err != nil {
		return err
	}
	defer stop()
	ours := fmt.Sprintf("https://127.0.0.1:%d/webhooks/auth/seed", g.process.Web)
	if err := harness.Poll(ctx, 30*time.Second, func() error { _, err := g.askFor(theirs, 1, 0); return err }); err != nil {
		return err
	}
	g.profiled("decisions")
	for _, streams := range []int{1, 16} {
		var our, their, ourCPU, theirCPU []float64
		var p99 time.Duration
		for range 5 {
			for _, url := range []string{theirs, ours} {
				const during = 2 * time.Second
				pid := command.Process.Pid
				if url == ours {
					pid = g.process.PID()
				}
				before, err := harness.UsageOf(pid)
				if err != nil {
					return err
				}
				took, err := g.askFor(url, streams, during)
				if err != nil {
					return err
				}
				after, err := harness.UsageOf(pid)
				if err != nil {
					return err
				}
				each, cpu := float64(during.Microseconds())/float64(len(took)), (after.CPU-before.CPU)*1e6/float64(len(took))
				if url == theirs {
					their, theirCPU = append(their, each), append(theirCPU, cpu)
					continue
				}
				our, ourCPU, p99 = append(our, each), append(ourCPU, cpu), quantile(took, 0.99)
			}
		}
		g.add(fmt.Sprintf("… CPU time of the server, %d streams: each", streams), median(ourCPU), "µs", spreadOf(ourCPU),
			fmt.Sprintf("%.2f × a handler that answers without thinking, %.0f µs (%s); target ≤ 1.3", median(ourCPU)/median(theirCPU), median(theirCPU), spreadOf(theirCPU)))
		g.add(fmt.Sprintf("decisions over HTTP/2 and TLS, %d streams: each", streams), median(our), "µs", spreadOf(our)+fmt.Sprintf(", p99 %.2f ms", milliseconds(p99)),
			fmt.Sprintf("%.2f × a handler that answers without thinking, %.0f µs (%s); target ≤ 1.3", median(our)/median(their), median(their), spreadOf(their)))
	}
	return nil
}

// besideHostility asks for decisions at a steady pace, alone and beside a hostile client of a path.
func (g *gate) besideHostility(ctx context.Context, path string) error {
	url := fmt.Sprintf("https://127.0.0.1:%d/webhooks/auth/seed", g.process.Web)
	pace := func() ([]time.Duration, error) {
		client, err := g.caller()
		if err != nil {
			return nil, err
		}
		defer client.CloseIdleConnections()
		questions := bodies(small)
		var took []time.Duration
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for i := range 2000 {
			one, err := ask(client, url, questions[i%len(questions)], `"allowed":true`)
			if err != nil {
				return nil, err
			}
			took = append(took, one)
			<-ticker.C
		}
		return took, nil
	}
	alone, err := pace()
	if err != nil {
		return err
	}
	before, err := usageOf(g.process)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command, err := part(ctx, hostilePart, fmt.Sprintf("https://127.0.0.1:%d%s", g.process.Web, path), g.certificates)
	if err != nil {
		return err
	}
	defer func() { cancel(); _ = command.Wait() }()
	time.Sleep(2 * time.Second)
	g.profiled("hostility")
	beside, err := pace()
	if err != nil {
		return err
	}
	after, err := usageOf(g.process)
	if err != nil {
		return err
	}
	g.add(fmt.Sprintf("200 decisions a second beside a hostile client of %s, 200 connections: p99", path), milliseconds(quantile(beside, 0.99)), "ms",
		fmt.Sprintf("p50 %.2f, worst %.1f ms (n=%d)", milliseconds(quantile(beside, 0.5)), milliseconds(slices.Max(beside)), len(beside)),
		fmt.Sprintf("alone p99 %.2f ms; target ≤ 20", milliseconds(quantile(alone, 0.99))))
	g.add("… memory meanwhile", after.RSS, "MiB", fmt.Sprintf("peak %.0f", peakOf(g.process)), fmt.Sprintf("before %.0f; %.1f s CPU time", before.RSS, after.CPU-before.CPU))
	return nil
}

// hostile asks about invented names, and sends bodies that are huge, slow or costly, on 200 connections.
func hostile(url, certificates string) error {
	g := &gate{certificates: certificates}
	for c := range 200 {
		client, err := g.caller()
		if err != nil {
			return err
		}
		if c%8 >= 4 { // Half of them speak HTTP/1.1.
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		}
		go func() {
			for i := 0; ; i++ {
				var body io.Reader
				switch admission := strings.Contains(url, "/admission/"); c % 4 {
				case 0:
					name := fmt.Sprint("invented-", c, "-", i)
					if admission {
						body = strings.NewReader(creationOf(gardenletOf("hostile"), name))
						break
					}
					_, review, _ := bytes.Cut(reviewOf(gardenletOf("hostile"), seedsGroup, "secrets", "default", name, ""), []byte("\r\n\r\n"))
					body = bytes.NewReader(review)
				case 1:
					body = io.MultiReader(strings.NewReader(`{"spec":`), &drip{})
				case 2:
					body = strings.NewReader(`{"spec":{"groups":["` + strings.Repeat(`a","`, 700_000) + `"]}}`)
				default:
					body = strings.NewReader("- " + strings.Repeat("[a],", 15_000))
				}
				if response, err := client.Post(url, "application/json", body); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			}
		}()
	}
	select {}
}

// creationOf is an AdmissionReview about a Secret that is named after a Shoot and has a megabyte.
func creationOf(user, shoot string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"default","name":"%[2]s.ca-cluster",
		"kind":{"group":"","version":"v1","kind":"Secret"},"resource":{"group":"","version":"v1","resource":"secrets"},"userInfo":{"username":"%[1]s","groups":["%[3]s"]},
		"object":{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"default","name":"%[2]s.ca-cluster"},"data":{"a":"%[4]s"}}}}`, user, shoot, seedsGroup, strings.Repeat("YWFh", 250_000))
}

// drip is a body of one space a second.
type drip struct{}

func (*drip) Read(into []byte) (int, error) {
	time.Sleep(time.Second)
	return copy(into, " "), nil
}
