package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
)

const secretLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"

// startAuthorizer starts the authorizer that the shoot's kube-apiserver asks.
func startAuthorizer(bin, dir string, landscape *harness.Landscape, agents *harness.Agents) (*harness.Process, error) {
	return agents.Run(harness.AgentProcessOptions{
		Binary: filepath.Join(bin, "node-agent-authorizer"), Dir: filepath.Join(dir, "node-agent-authorizer"), Source: landscape.Seed,
		Config: map[string]any{"logFormat": "text", "authorizeWithSelectors": "Auto"},
	})
}

// showAgents shows what the agents of two nodes may do in the shoot.
func showAgents(ctx context.Context, out *script, authorizer *harness.Process, landscape *harness.Landscape, agents *harness.Agents) error {
	out.heading("The agents of two nodes work through the shoot's kube-apiserver, which asks node-agent-authorizer")
	if err := authorizer.AwaitReady(ctx); err != nil {
		return err
	}
	out.step("ready; it logs to %s", relative(authorizer.Log))
	for _, name := range []string{"one", "two"} {
		machine := harness.Object("machine.sapcloud.io/v1alpha1", "Machine", harness.MachineNamespace, "machine-"+name)
		machine.SetLabels(map[string]string{"node": "node-" + name})
		machine.Object["spec"] = map[string]any{"nodeTemplate": map[string]any{"metadata": map[string]any{"labels": map[string]any{secretLabel: "configuration-" + name}}}}
		configuration := harness.Secret("kube-system", "configuration-"+name, nil)
		configuration.Labels = map[string]string{"worker.gardener.cloud/pool": name}
		if err := landscape.SeedClient.Create(ctx, machine); err != nil {
			return err
		}
		for _, object := range []client.Object{configuration, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + name}}} {
			if err := landscape.ShootClient.Create(ctx, object); err != nil {
				return err
			}
		}
	}
	agent, err := agents.Agent("machine-one")
	if err != nil {
		return err
	}
	for _, a := range []struct {
		what    string
		object  client.Object
		allowed bool
	}{
		{"read the configuration of its own worker pool", harness.Secret("kube-system", "configuration-one", nil), true},
		{"read its neighbour's", harness.Secret("kube-system", "configuration-two", nil), false},
		{"read its own Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-one"}}, true},
		{"read its neighbour's", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-two"}}, false},
	} {
		if err := harness.Poll(ctx, patience, func() error {
			err := agent.Get(ctx, client.ObjectKeyFromObject(a.object), a.object)
			switch {
			case a.allowed && err == nil:
				out.step("machine-one  allowed  %s", a.what)
				return nil
			case !a.allowed && apierrors.IsForbidden(err):
				_, reason, _ := strings.Cut(err.Error(), ": ")
				out.step("machine-one  refused  %s\n               %s", a.what, reason)
				return nil
			case err == nil:
				return fmt.Errorf("the agent is allowed to %s", a.what)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
