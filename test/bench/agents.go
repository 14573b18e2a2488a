package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/cluster"
	"github.com/espalier-project/espalier/test/harness"
)

const (
	benchNodes = 1000
	benchPods  = 30_000
	manyShoots = 200
)

// nodeAgents measures node-agent-authorizer: alone, with a large shoot, and with many shoots.
func nodeAgents(ctx context.Context, b *bench) error {
	source, err := cluster.Start(ctx, cluster.Options{Name: "source", Dir: filepath.Join(b.dir, "source")})
	if err != nil {
		return err
	}
	defer source.Stop()
	admin, err := source.Admin()
	if err != nil {
		return err
	}
	sourceClient, err := client.New(admin, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		return err
	}
	if err := harness.InstallMachines(ctx, sourceClient); err != nil {
		return err
	}
	shoot, err := harness.StartAgents(ctx, harness.AgentOptions{Name: "shoot", Dir: filepath.Join(b.dir, "shoot"), ReviewVersion: "v1"}, "")
	if err != nil {
		return err
	}
	defer shoot.Stop()
	g := &gate{bench: b, certificates: filepath.Join(b.dir, "shoot", "ca.crt")}
	binary := filepath.Join(filepath.Dir(b.binary), "node-agent-authorizer")
	start := func(config map[string]any) error {
		b.processes++
		if g.process, err = shoot.Run(harness.AgentProcessOptions{Binary: binary, Dir: filepath.Join(b.dir, fmt.Sprintf("agents-%d", b.processes)), Source: source, Config: config}); err != nil {
			return err
		}
		if err := g.process.AwaitReady(ctx); err != nil {
			return err
		}
		return settle(ctx, g.process)
	}
	if info, err := os.Stat(binary); err == nil {
		b.add("executable node-agent-authorizer", float64(info.Size())/1e6, "MB", "", "")
	}
	if err := start(map[string]any{"authorizeWithSelectors": "Auto"}); err != nil {
		return err
	}
	idle, err := usageOf(g.process)
	if err != nil {
		return err
	}
	b.add("node agents: memory, idle", idle.RSS, "MiB", fmt.Sprintf("%.1f anonymous", idle.Anonymous), "target ≤ 30")
	g.process.Stop()
	if err := manyDirectories(ctx, b, g, shoot, start); err != nil {
		return err
	}
	if err := fillShoot(ctx, sourceClient, shoot.Client); err != nil {
		return err
	}
	started := time.Now()
	if err := start(map[string]any{"authorizeWithSelectors": "Auto"}); err != nil {
		return err
	}
	defer g.process.Stop()
	large, err := usageOf(g.process)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("%d Nodes, %d Pods: ", benchNodes, benchPods)
	b.add(title+"ready and settled", time.Since(started).Seconds(), "s", fmt.Sprintf("%.1f s CPU time", large.CPU), "")
	b.add(title+"memory", large.RSS, "MiB", fmt.Sprintf("peak %.0f", peakOf(g.process)), "target ≤ 80")
	return agentDecisions(b, g, title)
}

// agentDecisions measures questions of agents that are allowed and denied.
func agentDecisions(b *bench, g *gate, title string) error {
	ask := func(machine, verb, resource, namespace, name string) []byte {
		body := fmt.Sprintf(`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"namespace":%q,"verb":%q,"version":"v1","resource":%q,"name":%q},"user":"gardener.cloud:node-agent:machine:%s","groups":["gardener.cloud:node-agents","system:authenticated"]}}`,
			namespace, verb, resource, name, machine)
		return fmt.Appendf(nil, "POST /webhooks/auth/nodeagent HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	var own, foreign [][]byte
	for i := range benchNodes {
		own = append(own, ask(machineName(i), "get", "pods", "default", podName(i)))
		foreign = append(foreign, ask(machineName(i), "get", "pods", "default", podName((i+1)%benchNodes)))
	}
	for _, c := range []struct {
		name     string
		requests [][]byte
		want     string
	}{{"own Pod, allowed", own, `"allowed":true`}, {"another node's Pod, denied", foreign, `"denied":true`}} {
		for _, connections := range []int{1, 16} {
			perSecond, p99, err := g.load(c.requests, c.want, connections, 4*time.Second)
			if err != nil {
				return err
			}
			b.add(fmt.Sprintf("%sdecisions, %d connections: %s", title, connections, c.name), perSecond, "1/s", fmt.Sprintf("p99 %.2f ms", milliseconds(p99)), "")
		}
	}
	return nil
}

// manyDirectories measures one process with many shoots, all of which lead to one API server.
func manyDirectories(ctx context.Context, b *bench, g *gate, shoot *harness.Agents, start func(map[string]any) error) error {
	var before harness.Usage
	for _, shoots := range []int{0, manyShoots} {
		dir := filepath.Join(b.dir, fmt.Sprintf("shoots-%d", shoots))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if _, err := shoot.Entry(filepath.Join(filepath.Dir(b.binary), "node-agent-authorizer"), dir, fmt.Sprintf("authorizer-of-%d", shoots)); err != nil {
			return err
		}
		for i := range shoots {
			entry := "targetClientConnection: {kubeconfig: target-kubeconfig}\nmachineNamespace: " + harness.MachineNamespace + "\n"
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("shoot-%03d.yaml", i)), []byte(entry), 0o600); err != nil {
				return err
			}
		}
		if err := start(map[string]any{"shootsDirectory": dir}); err != nil {
			return err
		}
		u, err := usageOf(g.process)
		if err != nil {
			return err
		}
		if shoots == 0 {
			before = u
		} else {
			b.add(fmt.Sprintf("%d shoots in one process: memory", shoots), u.RSS, "MiB", fmt.Sprintf("%.1f s CPU time to settle", u.CPU), "")
			b.add("… a shoot", (u.RSS-before.RSS)*1024/float64(shoots), "KiB", "", "")
		}
		g.process.Stop()
	}
	return ctx.Err()
}

func machineName(i int) string { return fmt.Sprintf("machine-%04d", i) }
func nodeName(i int) string    { return fmt.Sprintf("node-%04d", i) }
func podName(i int) string     { return fmt.Sprintf("pod-of-some-deployment-%05d", i) }

// fillShoot makes Machines, Nodes and Pods.
func fillShoot(ctx context.Context, source, shoot client.Client) error {
	work := make(chan func() error, 100)
	failed := make(chan error, 1)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for do := range work {
				if err := do(); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range benchNodes {
		work <- func() error {
			m := harness.Object("machine.sapcloud.io/v1alpha1", "Machine", harness.MachineNamespace, machineName(i))
			m.SetLabels(map[string]string{"node": nodeName(i)})
			return source.Create(ctx, m)
		}
		work <- func() error {
			return shoot.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{"kubernetes.io/hostname": nodeName(i)}}})
		}
	}
	for i := range benchPods {
		work <- func() error {
			return shoot.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: podName(i), Labels: map[string]string{"app": "some", "pod-template-hash": "abcdef"}},
				Spec: corev1.PodSpec{NodeName: nodeName(i % benchNodes), Containers: []corev1.Container{{
					Name: "main", Image: "registry.example.com/some/image:v1.2.3", Args: []string{"--one=two", "--three=four"},
					Env: []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}},
				}}},
			})
		}
		if i%10_000 == 9_999 {
			fmt.Fprintf(os.Stderr, "made %d Pods\n", i+1)
		}
	}
	close(work)
	workers.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
