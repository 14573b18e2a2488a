package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/env/kubelet"
)

// pod is a Pod of the node, with the process that it stands for.
type pod struct {
	node   *Node
	object *corev1.Pod
	// number makes the address.
	number int
	// dir has the files of the container below root, and the logs.
	dir   string
	files *kubelet.Container
	end   context.CancelFunc
	ended chan struct{}
	token token

	mu       sync.Mutex
	ready    bool
	restarts int
}

func (p *pod) container() *corev1.Container { return &p.object.Spec.Containers[0] }

func (p *pod) ip() string       { return fmt.Sprintf("10.1.%d.%d", p.number/250, p.number%250+1) }
func (p *pod) loopback() string { return fmt.Sprintf("127.1.%d.%d", p.number/250, p.number%250+1) }

func (p *pod) log(restarts int) string { return filepath.Join(p.dir, strconv.Itoa(restarts)+".log") }

func (p *pod) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *pod) restarted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// executable is the file that the image stands for; empty if there is none.
func (p *pod) executable() string {
	image, _, _ := strings.Cut(filepath.Base(p.container().Image), "@")
	image, _, _ = strings.Cut(image, ":")
	file := filepath.Join(p.node.Bin, image)
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}

// live is the life of a Pod, from its binding to its deletion.
func (p *pod) live(ctx context.Context) {
	defer close(p.ended)
	p.bind(ctx)
	if p.executable() == "" {
		p.report(ctx, true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
		<-ctx.Done()
	}
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, 10*time.Second) {
		started := time.Now()
		code := p.run(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(started) > time.Minute {
			pause = time.Second
		}
		p.mu.Lock()
		p.restarts++
		p.mu.Unlock()
		p.report(ctx, false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s after exit code %d", pause, code)}})
		wait(ctx, pause)
	}
	p.remove()
}

// remove lets go of a Pod that is to be deleted; the cluster may be gone by then.
func (p *pod) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	current := &corev1.Pod{}
	if err := p.node.client.Get(ctx, client.ObjectKeyFromObject(p.object), current); err == nil && current.UID == p.object.UID && current.DeletionTimestamp != nil {
		_ = p.node.client.Delete(ctx, current, client.GracePeriodSeconds(0))
	}
}

// bind does what a scheduler does where there is one Node.
func (p *pod) bind(ctx context.Context) {
	for ctx.Err() == nil && p.object.Spec.NodeName == "" {
		err := p.node.client.SubResource("binding").Create(ctx, p.object, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: Name}})
		if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return
		}
		wait(ctx, interval)
	}
}

// run starts the process when all of its files are there, looks after it, and returns its exit code.
func (p *pod) run(ctx context.Context) int {
	for told := ""; ctx.Err() == nil; wait(ctx, interval) {
		err := p.files.Mount(ctx)
		if err == nil {
			break
		}
		if err.Error() != told {
			told = err.Error()
			p.report(ctx, false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}})
			p.event(ctx, "FailedMount", told)
		}
	}
	if ctx.Err() != nil {
		return 0
	}
	arguments, environment, err := p.files.Command()
	if err != nil {
		p.event(ctx, "Failed", err.Error())
		return -1
	}
	process, err := harness.Start(p.object.Name, p.executable(), p.log(p.restarted()), arguments, environment)
	if err != nil {
		p.event(ctx, "Failed", err.Error())
		return -1
	}
	code := make(chan int, 1)
	go func() { code <- process.Wait(100 * 365 * 24 * time.Hour) }()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	p.report(ctx, false, running)
	alive := liveness{probe: p.container().LivenessProbe, next: time.Now()}
	if alive.probe != nil {
		alive.next = alive.next.Add(time.Duration(alive.probe.InitialDelaySeconds) * time.Second)
	}
	for {
		select {
		case <-ctx.Done():
			process.Stop()
			return <-code
		case result := <-code:
			return result
		case <-time.After(interval):
		}
		_ = p.files.Mount(ctx) // What cannot be read now stays as it is.
		if ready := p.probe(ctx, p.container().ReadinessProbe) == nil; ready != p.isReady() {
			p.report(ctx, ready, running)
		}
		if err := alive.check(ctx, p); err != nil && ctx.Err() == nil {
			p.event(ctx, "Unhealthy", "Liveness probe failed: "+err.Error())
			process.Stop()
			return <-code
		}
	}
}

// liveness counts failures of the liveness probe.
type liveness struct {
	probe    *corev1.Probe
	next     time.Time
	failures int32
}

// check returns an error if the probe has failed as often as it may.
func (l *liveness) check(ctx context.Context, p *pod) error {
	if l.probe == nil || time.Now().Before(l.next) {
		return nil
	}
	l.next = time.Now().Add(time.Duration(l.probe.PeriodSeconds) * time.Second)
	err := p.probe(ctx, l.probe)
	if err == nil {
		l.failures = 0
		return nil
	}
	if l.failures++; l.failures < l.probe.FailureThreshold {
		return nil
	}
	return err
}

// probe asks as a kubelet does.
func (p *pod) probe(ctx context.Context, probe *corev1.Probe) error {
	if probe == nil || probe.HTTPGet == nil {
		return nil
	}
	return kubelet.Probe(ctx, probe, net.JoinHostPort(p.loopback(), strconv.Itoa(p.files.Port(probe.HTTPGet.Port))))
}

// listen lets a server be reached at the Pod's address only.
func (p *pod) listen(server map[string]any) error {
	server["bindAddress"] = p.loopback()
	return nil
}

// report writes the status of the Pod; what cannot be written is written with the next change.
func (p *pod) report(ctx context.Context, ready bool, state corev1.ContainerState) {
	p.mu.Lock()
	p.ready = ready
	restarts := p.restarts
	p.mu.Unlock()
	condition := func(kind corev1.PodConditionType, holds bool) corev1.PodCondition {
		status := corev1.ConditionFalse
		if holds {
			status = corev1.ConditionTrue
		}
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Now()}
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: p.ip(), PodIPs: []corev1.PodIP{{IP: p.ip()}}, StartTime: &p.object.CreationTimestamp,
		Conditions: []corev1.PodCondition{condition(corev1.PodScheduled, true), condition(corev1.PodInitialized, true), condition(corev1.ContainersReady, ready), condition(corev1.PodReady, ready)},
	}
	if state.Waiting != nil && restarts == 0 {
		status.Phase = corev1.PodPending
	}
	started := state.Running != nil
	for i := range p.object.Spec.Containers {
		c := &p.object.Spec.Containers[i]
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: ready, Started: &started, State: state, RestartCount: int32(restarts)})
	}
	current := p.object.DeepCopy()
	current.Status = corev1.PodStatus{}
	changed := current.DeepCopy()
	changed.Status = status
	_ = p.node.client.Status().Patch(ctx, changed, client.MergeFrom(current))
}

// event tells what is wrong.
func (p *pod) event(ctx context.Context, reason, message string) {
	now := metav1.Now()
	_ = p.node.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: p.object.Name + ".", Namespace: p.object.Namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.object.Namespace, Name: p.object.Name, UID: p.object.UID},
		Reason:         reason, Message: message, Type: corev1.EventTypeWarning, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: Name},
	})
}
