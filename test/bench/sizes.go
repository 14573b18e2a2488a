package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-project/espalier/test/harness"
	"github.com/espalier-project/espalier/test/landscape"
)

// sizeOf measures admission-controller as a process over a landscape, so that three of them tell how cost grows with objects. The garden is in
// memory: no kube-apiserver holds 333,000 objects beside the process on a machine of this size. It speaks Protocol Buffers, as Gardener's does, or
// JSON, as one does that serves the same kinds by CRDs.
func sizeOf(o landscape.Options, protobuf bool) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error { return measureSize(ctx, b, o, protobuf) }
}

// larger lies between the largest landscape in a real garden and the huge one.
var larger = landscape.Options{Seeds: 300, Projects: 1500, Shoots: 30_000}

// sized is one landscape with its process.
type sized struct {
	*gate
	landscape.Options
	garden *harness.Streamed
	// title and name say which landscape it is, and in which form it comes.
	title, name string
	// anonymous is what of the settled memory is not the program itself.
	anonymous []float64
}

func measureSize(ctx context.Context, b *bench, o landscape.Options, protobuf bool) error {
	form := "JSON"
	if protobuf {
		form = "Protocol Buffers"
	}
	name := fmt.Sprintf("sizes-%d-%s", o.Shoots, strings.ToLower(form[:4]))
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	garden, err := harness.StartStreamed(dir, o, protobuf)
	if err != nil {
		return err
	}
	defer garden.Stop()
	runtime.GC()
	s := &sized{
		gate: &gate{bench: b, garden: garden.Garden, certificates: filepath.Join(dir, "ca.crt")}, Options: o, garden: garden,
		title: fmt.Sprintf("%d shoots, %s: ", o.Shoots, form), name: name,
	}
	s.asAdmin = true
	s.add(s.title+"objects", float64(garden.Objects), "", fmt.Sprintf("%d MB of %s", garden.Bytes>>20, form), "")
	for _, part := range []func(context.Context) error{s.starts, s.decide, s.flip, s.restart} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	s.process.Stop()
	return nil
}

// starts measures the start and the memory, three times.
func (s *sized) starts(ctx context.Context) error {
	for range 3 {
		if s.process != nil {
			s.process.Stop()
		}
		if err := s.start(ctx); err != nil {
			return err
		}
		u, err := usageOf(s.process)
		if err != nil {
			return err
		}
		s.cpu = append(s.cpu, u.CPU)
		if err := settle(ctx, s.process); err != nil {
			return err
		}
		if u, err = usageOf(s.process); err != nil {
			return err
		}
		if s.profile != "" {
			_, heap := s.process.Get(s.process.Metrics, "/debug/pprof/heap")
			if err := os.WriteFile(filepath.Join(s.profile, fmt.Sprintf("%s-%d.heap", s.name, s.processes)), []byte(heap), 0o600); err != nil {
				return err
			}
		}
		s.settled, s.anonymous, s.peak = append(s.settled, u.RSS), append(s.anonymous, u.Anonymous), max(s.peak, u.Peak)
	}
	target := map[int][3]string{10_000: {"target ≤ 2.5", "target ≤ 60", "target ≤ 120"}, 100_000: {"target ≤ 25", "target ≤ 300", "target ≤ 400"}}[s.Shoots]
	s.add(s.title+"start to ready", median(s.ready), "s", spreadOf(s.ready), target[0])
	s.add(s.title+"CPU time until ready", median(s.cpu), "s", spreadOf(s.cpu), "")
	s.add(s.title+"memory, settled", median(s.settled), "MiB", spreadOf(s.settled), target[1])
	s.add(s.title+"… of it anonymous", median(s.anonymous), "MiB", spreadOf(s.anonymous), "")
	s.add(s.title+"memory, peak of the start", s.peak, "MiB", "", target[2])
	return nil
}

func (s *sized) start(ctx context.Context) (err error) {
	s.processes++
	config := map[string]any{}
	if s.profile != "" {
		config["debugging"] = map[string]any{"enableProfiling": true}
	}
	began := time.Now()
	if s.process, err = s.garden.Run(harness.GardenProcessOptions{
		Binary: filepath.Join(filepath.Dir(s.binary), "admission-controller"), Dir: filepath.Join(s.dir, fmt.Sprintf("sized-%d", s.processes)), Config: config, AsAdmin: true,
	}); err != nil {
		return err
	}
	if s.profile != "" {
		go s.saveProfile(s.process, filepath.Join(s.profile, fmt.Sprintf("%s-%d.pprof", s.name, s.processes)))
	}
	if err := awaitReady(ctx, s.process); err != nil {
		return err
	}
	s.ready = append(s.ready, time.Since(began).Seconds())
	return nil
}

// questions are reviews about Secrets of a thousand shoots that are spread over the landscape.
func (s *sized) questions() [][]byte {
	questions := make([][]byte, 1000)
	for i := range questions {
		shoot := i * 7919 % s.Shoots
		namespace, name := s.ShootName(shoot)
		questions[i] = reviewOf(gardenletOf(s.SeedOf(shoot)), seedsGroup, "secrets", namespace, name+".ca-cluster", "")
	}
	return questions
}

func (s *sized) decide(context.Context) error {
	refused := [][]byte{reviewOf(gardenletOf(s.IdleSeed()), seedsGroup, "cloudprofiles", "", landscape.CloudProfile, "core.gardener.cloud")}
	for _, c := range []struct {
		name      string
		questions [][]byte
		want      string
	}{{"Secret of a Shoot, allowed", s.questions(), `"allowed":true`}, {"CloudProfile, refused", refused, `"allowed":false`}} {
		perSecond, p99, err := s.load(c.questions, c.want, 16, 4*time.Second)
		if err != nil {
			return err
		}
		s.add(s.title+"decisions, 16 connections: "+c.name, perSecond, "1/s", fmt.Sprintf("p99 %.2f ms", milliseconds(p99)), "")
	}
	u, err := usageOf(s.process)
	if err != nil {
		return err
	}
	s.add(s.title+"memory after the decisions", u.RSS, "MiB", "", "")
	return nil
}

// shootWith returns a Shoot with an audit policy.
func (s *sized) shootWith(i int, policy string) (found landscape.Object, err error) {
	err = s.GenerateShoot(i, func(object landscape.Object) error {
		if object.Resource == "shoots" {
			found = object
		}
		return nil
	})
	if err != nil {
		return found, err
	}
	harness.Complete(found, i)
	if policy != "" {
		kubernetes := found.Content["spec"].(map[string]any)["kubernetes"].(map[string]any)
		kubernetes["kubeAPIServer"].(map[string]any)["auditConfig"].(map[string]any)["auditPolicy"] = map[string]any{"configMapRef": map[string]any{"name": policy}}
	}
	return found, err
}

// writesPerSecond is how many Shoots others write meanwhile.
const writesPerSecond = 200

// flip measures the time from a Shoot's write until the decision about it follows, while others write.
func (s *sized) flip(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var writing sync.WaitGroup
	defer writing.Wait()
	var failed atomic.Pointer[error]
	writing.Go(func() {
		ticks := time.NewTicker(time.Second / writesPerSecond)
		defer ticks.Stop()
		for i := 1; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			object, err := s.shootWith(1+i*31%(s.Shoots-1), "")
			if err == nil {
				object.Content["status"].(map[string]any)["observedGeneration"] = i
				err = s.garden.Put(object)
			}
			if err != nil {
				failed.Store(&err)
				return
			}
		}
	})
	web, err := s.garden.HTTPS()
	if err != nil {
		return err
	}
	namespace, _ := s.ShootName(0)
	question := fmt.Appendf(nil, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"namespace":%q,"verb":"get","resource":"configmaps","name":"flip"},"user":%q,"groups":[%q]}}`,
		namespace, gardenletOf(s.SeedOf(0)), seedsGroup)
	var took []time.Duration
	for i := range 400 {
		policy, want := "flip", `"allowed":true`
		if i%2 == 1 {
			policy, want = "audit-policy", `"allowed":false`
		}
		object, err := s.shootWith(0, policy)
		if err != nil {
			return err
		}
		if err := s.garden.Put(object); err != nil {
			return err
		}
		for written := time.Now(); ; {
			_, answer, err := s.process.Ask(web, http.MethodPost, "/webhooks/auth/seed", "application/json", question)
			if err != nil {
				return err
			}
			if strings.Contains(answer, want) {
				took = append(took, time.Since(written))
				break
			}
			if time.Since(written) > 10*time.Second {
				return errors.New("the decision did not follow")
			}
		}
	}
	end()
	writing.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	s.add(s.title+"write until the decision flips, at 200 writes/s, p99", milliseconds(quantile(took, 0.99)), "ms", fmt.Sprintf("p50 %.2f ms", milliseconds(quantile(took, 0.5))), "target ≤ 20")
	return nil
}

// restart ends the process under load and starts another one. Callers may get no answer or be told that it is not ready, and never a wrong one.
func (s *sized) restart(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var right, unready, refused, wrong atomic.Int64
	var asking sync.WaitGroup
	namespace, name := s.ShootName(s.Shoots - 2)
	body := func(user string) []byte {
		return fmt.Appendf(nil, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"namespace":%q,"verb":"get","resource":"secrets","name":%q},"user":%q,"groups":[%q]}}`,
			namespace, name+".ca-cluster", user, seedsGroup)
	}
	questions := map[string][]byte{`"allowed":true`: body(gardenletOf(s.SeedOf(s.Shoots - 2))), `"allowed":false`: body(gardenletOf(s.IdleSeed()))}
	process := atomic.Pointer[harness.Process]{}
	process.Store(s.process)
	for want, question := range questions {
		for range 4 {
			web, err := s.garden.HTTPS()
			if err != nil {
				return err
			}
			asking.Go(func() {
				for ctx.Err() == nil {
					response, answer, err := process.Load().Ask(web, http.MethodPost, "/webhooks/auth/seed", "application/json", question)
					switch {
					case err != nil:
						refused.Add(1)
						time.Sleep(time.Millisecond)
					case response.StatusCode != http.StatusOK:
						unready.Add(1)
						time.Sleep(time.Millisecond)
					case strings.Contains(answer, want):
						right.Add(1)
					case strings.Contains(answer, `"evaluationError":"503 `):
						unready.Add(1) // The API server goes on to its next authorizer, or refuses.
						time.Sleep(time.Millisecond)
					default:
						wrong.Add(1)
					}
				}
			})
		}
	}
	time.Sleep(time.Second)
	s.process.Kill()
	began := time.Now()
	err := s.start(ctx)
	if err == nil {
		process.Store(s.process)
		time.Sleep(2 * time.Second)
	}
	took := time.Since(began).Seconds() - 2
	end()
	asking.Wait()
	if err != nil {
		return err
	}
	s.add(s.title+"killed under load: wrong answers", float64(wrong.Load()), "", fmt.Sprintf("%d right, %d not ready, %d not connected", right.Load(), unready.Load(), refused.Load()), "target 0")
	s.add(s.title+"… ready again", took, "s", "", "")
	u, err := usageOf(s.process)
	if err != nil {
		return err
	}
	s.add(s.title+"… memory, peak", u.Peak, "MiB", "", "")
	return nil
}
