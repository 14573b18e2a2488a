package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/espalier-project/espalier/test/harness"
)

const (
	// askedTimes is how often each question is asked.
	askedTimes = 20
	// askedAbout is how many objects the ManagedResource has that is compared, and askedAmong how many other ManagedResources there are.
	askedAbout, askedAmong = 200, 200
	whyTarget              = "target ≤ 300 ms, 5 requests"
)

// questions measures how long kubectl espalier takes to answer as a process, and how many requests an answer costs.
func questions(ctx context.Context, b *bench) error {
	p, err := b.startReady(ctx, nil)
	if err != nil {
		return err
	}
	defer p.Stop()
	manifests := func(name string, n int) map[string][]byte {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d, namespace: default}\ndata: {key: value}\n", name, i)
		}
		return map[string][]byte{"data.yaml": []byte(text.String())}
	}
	asked := manifests("asked", askedAbout)
	asked["once.yaml"] = []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: once, namespace: default, annotations: {resources.gardener.cloud/ignore: \"true\"}}\n")
	if err := b.create(ctx, b.SeedClient, "default", "asked", asked); err != nil {
		return err
	}
	if err := b.ShootClient.Create(ctx, harness.Object("v1", "ConfigMap", "default", "unowned")); err != nil {
		return err
	}
	for i := range askedAmong {
		name := fmt.Sprintf("other-%d", i)
		if err := b.create(ctx, b.SeedClient, "default", name, manifests(name, 5)); err != nil {
			return err
		}
	}
	if err := b.await(ctx, askedAmong+1, harness.Settled); err != nil {
		return err
	}
	q, err := newQuestioner(b)
	if err != nil {
		return err
	}
	for _, question := range []struct {
		what, target string
		arguments    []string
	}{
		{"why, by the origin annotation", whyTarget, []string{"why", "configmap", "asked-7"}},
		{fmt.Sprintf("why, by the inventories of %d ManagedResources", askedAmong+1), whyTarget, []string{"why", "configmap", "once"}},
		{"why, by neither: an object of nobody", whyTarget, []string{"why", "configmap", "unowned"}},
		{fmt.Sprintf("diff, %d objects", askedAbout), "", []string{"diff", "asked"}},
		{fmt.Sprintf("tree, %d ManagedResources with %d objects", askedAmong+1, askedAbout+5*askedAmong), "", []string{"tree"}},
	} {
		if err := q.ask(ctx, b, question.what, question.target, question.arguments); err != nil {
			return err
		}
	}
	return nil
}

// questioner asks by kubectl-espalier.
type questioner struct {
	plugin         string
	source, target *harness.Front
}

func newQuestioner(b *bench) (*questioner, error) {
	binary, err := filepath.Abs(b.binary)
	if err != nil {
		return nil, err
	}
	q := &questioner{plugin: filepath.Join(b.dir, "kubectl-espalier")}
	if err := os.Symlink(binary, q.plugin); err != nil {
		return nil, err
	}
	if q.source, err = harness.NewFront(b.dir, "source", b.SeedREST); err != nil {
		return nil, err
	}
	q.target, err = harness.NewFront(b.dir, "target", b.ShootREST)
	return q, err
}

// ask asks a question often, and adds a row with the median and the requests of one answer.
func (q *questioner) ask(ctx context.Context, b *bench, what, target string, arguments []string) error {
	var took []time.Duration
	var requests int
	for range askedTimes {
		q.source.Taken()
		q.target.Taken()
		command := exec.CommandContext(ctx, q.plugin, append(arguments, "-n=default", "--kubeconfig="+q.source.Kubeconfig, "--target-kubeconfig="+q.target.Kubeconfig)...)
		var errOut bytes.Buffer
		command.Stderr = &errOut
		began := time.Now()
		err := command.Run()
		took = append(took, time.Since(began))
		var ended *exec.ExitError
		if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 1) {
			return fmt.Errorf("%v: %w: %s", arguments, err, errOut.String())
		}
		requests = len(q.source.Taken()) + len(q.target.Taken())
	}
	slices.Sort(took)
	spread := fmt.Sprintf("%.0f … %.0f ms, %d requests", milliseconds(took[0]), milliseconds(took[len(took)-1]), requests)
	b.add("kubectl espalier "+what, milliseconds(took[len(took)/2]), "ms", spread, target)
	return nil
}
