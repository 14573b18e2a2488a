package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// sizes measures admission-controller as a process over two landscapes, which show how cost grows with objects. The gardens are in memory: no
// kube-apiserver holds 333,000 objects beside the process on a machine of this size. They speak Protocol Buffers, as gardener-apiserver does.
func sizes(ctx context.Context, b *bench) error {
	for _, c := range []struct {
		title   string
		objects landscape.Options
		targets [4]string
	}{
		{"10,000 shoots: ", largest, [4]string{"≤ 2.5", "", "≤ 60", "≤ 120"}},
		{"100,000 shoots: ", huge, [4]string{"≤ 16", "", "≤ 200", "≤ 280"}},
	} {
		if err := b.size(ctx, c.title, c.objects, c.targets); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) size(ctx context.Context, title string, o landscape.Options, targets [4]string) error {
	dir := filepath.Join(b.folder, fmt.Sprint(o.Shoots))
	garden, err := harness.StartStreamed(dir, o)
	if err != nil {
		return err
	}
	defer garden.Stop()
	runtime.GC()
	g := &gate{bench: b, garden: garden.Garden, certificates: filepath.Join(dir, "ca.crt"), admin: true}
	b.add(title+"objects", float64(garden.Objects), "", "")
	for range 3 {
		if err := g.startUp(ctx); err != nil {
			return err
		}
		g.report(title, targets)
		b.add(title+"CPU time an object", g.starting.CPU/float64(garden.Objects)*1e6, "µs", "")
		if err := g.sizeDecisions(title, o); err != nil {
			return err
		}
		g.process.Stop()
	}
	return nil
}

func (g *gate) sizeDecisions(title string, o landscape.Options) error {
	// Secrets of a thousand shoots that are spread over the landscape.
	secrets := make([][]byte, 1000)
	for i := range secrets {
		shoot := i * 7919 % o.Shoots
		namespace, name := o.ShootName(shoot)
		secrets[i] = reviewOf(gardenletOf(o.SeedOf(shoot)), seedsGroup, "secrets", namespace, name+".ca-cluster", "")
	}
	refused := [][]byte{reviewOf(gardenletOf(o.IdleSeed()), seedsGroup, "cloudprofiles", "", landscape.CloudProfile, "core.gardener.cloud")}
	for _, c := range []struct {
		name     string
		requests [][]byte
		want     string
	}{{"Secret of a Shoot, allowed", secrets, `"allowed":true`}, {"CloudProfile, refused", refused, `"allowed":false`}} {
		perSecond, _, err := g.load(c.requests, c.want, 16, decisionTime)
		if err != nil {
			return err
		}
		g.add(title+"decisions a second, 16 connections: "+c.name, perSecond, "", "")
	}
	u, err := usageOf(g.process)
	if err == nil {
		g.add(title+"memory after the decisions", u.RSS, "MiB", "")
	}
	return err
}
