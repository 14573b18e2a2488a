package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// sizeOf measures admission-controller as a process over a landscape, so that two of them show how cost grows with objects. The garden is in
// memory: no kube-apiserver holds 333,000 objects beside the process on a machine of this size. It speaks Protocol Buffers, as Gardener's does, or
// JSON, as one does that serves the same kinds by CRDs.
func sizeOf(o landscape.Options, protobuf bool) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error { return measureSize(ctx, b, o, protobuf) }
}

// sized is one landscape with its process.
type sized struct {
	*gate
	landscape.Options
	garden *harness.Streamed
	// title says which landscape it is, and in which form it comes.
	title string
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
		title: fmt.Sprintf("%d shoots, %s: ", o.Shoots, form),
	}
	s.asAdmin = true
	s.add(s.title+"objects", float64(garden.Objects), "", fmt.Sprintf("%d MB of %s", garden.Bytes>>20, form), "")
	for _, part := range []func(context.Context) error{s.starts, s.decide} {
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
		if err := s.startUp(ctx); err != nil {
			return err
		}
	}
	target := map[int][3]string{10_000: {"target ≤ 2.5", "target ≤ 60", "target ≤ 120"}, 100_000: {"target ≤ 16", "target ≤ 200", "target ≤ 280"}}[s.Shoots]
	s.add(s.title+"start to ready", median(s.ready), "s", spreadOf(s.ready), target[0])
	s.add(s.title+"CPU time until ready", median(s.cpu), "s", spreadOf(s.cpu), "")
	cost, compared := median(s.cpu)/float64(s.garden.Objects)*1e6, ""
	if s.Shoots == largest.Shoots {
		s.costOfLargest = cost
	} else if s.costOfLargest > 0 {
		compared = fmt.Sprintf("%.2f × that of %d shoots; target ≤ 1.15", cost/s.costOfLargest, largest.Shoots)
	}
	s.add(s.title+"… an object", cost, "µs", "", compared)
	s.add(s.title+"memory, settled", median(s.settled), "MiB", spreadOf(s.settled), target[1])
	s.add(s.title+"… of it anonymous", median(s.anonymous), "MiB", spreadOf(s.anonymous), "")
	s.add(s.title+"memory, peak of the start", s.peak, "MiB", "", target[2])
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
