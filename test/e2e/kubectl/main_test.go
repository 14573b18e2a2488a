// Package kubectl runs kubectl-espalier as a process against a source and a target whose API servers refuse every write and count requests.
package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

var (
	landscape      *harness.Landscape
	plugin         string
	source, target *harness.Front
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, "kubectl", false, func(ctx context.Context, s *harness.Suite) (func() error, error) {
		landscape = s.Landscape
		var err error
		if plugin, err = harness.Build(s.Dir, harness.Client); err != nil {
			return nil, err
		}
		if source, err = harness.NewFront(s.Dir, "source", s.SeedREST); err != nil {
			return nil, err
		}
		if target, err = harness.NewFront(s.Dir, "target", s.ShootREST); err != nil {
			return nil, err
		}
		// Drift stays long enough to be looked at.
		p, err := harness.Run(harness.ProcessOptions{Binary: s.Binary, Dir: filepath.Join(s.Dir, "process"), Source: s.Seed, Target: s.Shoot,
			Config: map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"driftRepairDelay": "1h"}}}})
		if err != nil {
			return nil, err
		}
		if err := p.AwaitReady(ctx); err != nil {
			return nil, err
		}
		return func() error {
			p.Kill()
			if refused := append(source.Refused(), target.Refused()...); len(refused) > 0 {
				return fmt.Errorf("CLI-11: the verbs sent writes: %v", refused)
			}
			return nil
		}, nil
	}))
}

// answer is what a command printed.
type answer struct {
	code           int
	stdout, stderr string
	requests       []string
	took           time.Duration
}

// ask runs a verb with both clusters.
func ask(t *testing.T, arguments ...string) answer {
	t.Helper()
	source.Taken()
	target.Taken()
	command := exec.CommandContext(t.Context(), plugin, append(arguments, "--kubeconfig="+source.Kubeconfig, "--target-kubeconfig="+target.Kubeconfig)...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	began := time.Now()
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return answer{command.ProcessState.ExitCode(), out.String(), errOut.String(), append(source.Taken(), target.Taken()...), time.Since(began)}
}

func decoded[T any](t *testing.T, a answer) T {
	t.Helper()
	var into T
	if err := json.Unmarshal([]byte(a.stdout), &into); err != nil {
		t.Fatalf("exit code %d, %s: %v\n%s", a.code, a.stderr, err, a.stdout)
	}
	return into
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	must.Succeed(t, harness.Poll(t.Context(), 40*time.Second, check))
}

// namespace makes a namespace in both clusters.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kubectl-"}}
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), ns))
	must.Succeed(t, landscape.ShootClient.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	return ns.Name
}

// apply has resource-manager apply manifests.
func apply(t *testing.T, ns, name, manifests string) {
	t.Helper()
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.Secret(ns, name, map[string][]byte{"all.yaml": []byte(manifests)}), client.FieldOwner("gardenlet")))
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.ManagedResource(ns, name, name)))
	eventually(t, func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, mr); err != nil {
			return err
		}
		if status, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied); !strings.HasPrefix(status, "True/") {
			return fmt.Errorf("%s %s", status, message)
		}
		return nil
	})
}
