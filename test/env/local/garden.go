package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// gardenTour shows what admission-controller does.
type gardenTour struct {
	*harness.Garden
	*script
	gatekeeper *harness.Process
	size       landscape.Options
}

// play starts the garden with admission-controller in it and seeds with shoots, and shows what they may do.
func (g *gardenTour) play(ctx context.Context, bin, dir string) (err error) {
	g.heading("Starting a garden that asks admission-controller about seeds")
	if g.Garden, err = harness.StartGarden(ctx, filepath.Join(dir, "garden"), func(text string) { g.step("%s", text) }); err != nil {
		return err
	}
	if g.gatekeeper, err = g.Run(harness.GardenProcessOptions{
		Binary: filepath.Join(bin, "admission-controller"), Dir: filepath.Join(dir, "admission-controller"),
		Config: map[string]any{"logFormat": "text", "server": map[string]any{"enableDebugHandlers": true}},
	}); err != nil {
		return err
	}
	g.size = landscape.Options{Seeds: 3, Projects: 2, Shoots: 6}
	for _, part := range []func(context.Context) error{g.prepare, g.run} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (g *gardenTour) stop() {
	if g.gatekeeper != nil {
		g.gatekeeper.Stop()
	}
	if g.Garden != nil {
		g.Stop()
	}
}

func (g *gardenTour) prepare(ctx context.Context) error {
	if err := g.gatekeeper.AwaitReady(ctx); err != nil {
		return err
	}
	if err := g.Restrict(ctx, g.gatekeeper); err != nil {
		return err
	}
	cl, err := dynamic.NewForConfig(g.REST)
	if err != nil {
		return err
	}
	objects := 0
	if err := g.size.Generate(func(object landscape.Object) error {
		objects++
		return harness.CreateObject(ctx, cl, object)
	}); err != nil {
		return err
	}
	for i := range g.size.Shoots {
		namespace, name := g.size.ShootName(i)
		if err := g.Client.Create(ctx, harness.Secret(namespace, name+".ssh-keypair", nil)); err != nil {
			return err
		}
	}
	if err := g.Client.Create(ctx, harness.Object("core.gardener.cloud/v1beta1", "CloudProfile", "", landscape.CloudProfile)); err != nil {
		return err
	}
	g.step("ready; %d seeds, %d shoots, %d objects in all; it logs to %s", g.size.Seeds, g.size.Shoots, objects, relative(g.gatekeeper.Log))
	return nil
}

// attempt is a request that a gardenlet sends to the garden's kube-apiserver.
type attempt struct {
	what    string
	seed    string
	do      func(client.Client) error
	allowed bool
}

// run lets gardenlets try what they may and what they must not do; what comes out as it should not is an error.
func (g *gardenTour) run(ctx context.Context) error {
	g.heading("Gardenlets of two seeds work through the garden's kube-apiserver")
	mine, other, idle := g.size.SeedOf(0), g.size.SeedOf(1), g.size.IdleSeed()
	namespace, shoot := g.size.ShootName(0)
	get := func(object *unstructured.Unstructured) func(client.Client) error {
		return func(cl client.Client) error {
			return cl.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
		}
	}
	create := func(object *unstructured.Unstructured) func(client.Client) error {
		return func(cl client.Client) error { return cl.Create(ctx, object.DeepCopy()) }
	}
	key := harness.Object("v1", "Secret", namespace, shoot+".ssh-keypair")
	profile := harness.Object("core.gardener.cloud/v1beta1", "CloudProfile", "", landscape.CloudProfile)
	bucket := harness.Object("core.gardener.cloud/v1beta1", "BackupBucket", "", "bucket-of-the-tour")
	bucket.Object["spec"] = map[string]any{"seedName": mine}
	touch := func(cl client.Client) error {
		return cl.Patch(ctx, harness.Object("core.gardener.cloud/v1beta1", "Shoot", namespace, shoot), harness.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"tour": "yes"}}}))
	}
	for _, a := range []attempt{
		{"read the SSH key of Shoot " + namespace + "/" + shoot, mine, get(key), true},
		{"read the SSH key of Shoot " + namespace + "/" + shoot, other, get(key), false},
		{"read the CloudProfile of all shoots", mine, get(profile), true},
		{"read the CloudProfile of all shoots", idle, get(profile), false},
		{"patch Shoot " + namespace + "/" + shoot, mine, touch, true},
		{"patch Shoot " + namespace + "/" + shoot, other, touch, false},
		{"create a BackupBucket of seed " + mine, other, create(bucket), false},
		{"create a BackupBucket of seed " + mine, mine, create(bucket), true},
	} {
		if err := g.attempt(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (g *gardenTour) attempt(ctx context.Context, a attempt) error {
	cl, err := g.Gardenlet(a.seed)
	if err != nil {
		return err
	}
	return harness.Poll(ctx, patience, func() error {
		err := a.do(cl)
		switch {
		case a.allowed && err == nil:
			g.step("%s  allowed  %s", a.seed, a.what)
			return nil
		case !a.allowed && apierrors.IsForbidden(err):
			_, reason, _ := strings.Cut(err.Error(), ": ")
			g.step("%s  refused  %s\n               %s", a.seed, a.what, reason)
			return nil
		case err == nil:
			return fmt.Errorf("%s is allowed to %s", a.seed, a.what)
		}
		return err
	})
}

func (g *gardenTour) explain() {
	page := fmt.Sprintf("https://127.0.0.1:%d/debug/resource-dependency-graph", g.Web)
	g.step("kubectl --kubeconfig %s get shoots,seeds -A", relative(g.Kubeconfig))
	g.step("curl -sk '%s?kind=Seed&format=json'", page)
	g.step("in a browser: %s (the certificate is of a local authority)", page)
}
