package main

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-project/espalier/test/harness"
)

func unrelatedSecrets(ctx context.Context, b *bench) error {
	const n = 80_000
	clientset, err := kubernetes.NewForConfig(b.SeedREST)
	if err != nil {
		return err
	}
	value := make([]byte, 512)
	if err := parallel(n, 2*writer, func(i int) error {
		_, err := clientset.CoreV1().Secrets("default").Create(ctx, harness.Secret("default", fmt.Sprintf("unrelated-%d", i), map[string][]byte{"data": value}), metav1.CreateOptions{})
		if i%20_000 == 0 {
			fmt.Fprintf(os.Stderr, "  %d Secrets\n", i)
		}
		return err
	}); err != nil {
		return err
	}
	if err := b.create(ctx, b.SeedClient, "default", "mr", map[string][]byte{"data.yaml": []byte(configMaps(1, "among-many"))}); err != nil {
		return err
	}
	started := time.Now()
	p, err := b.startReady(ctx, nil)
	if err != nil {
		return err
	}
	defer p.Stop()
	ready := time.Since(started).Seconds()
	if err := b.await(ctx, 1, harness.Settled); err != nil {
		return err
	}
	applied := time.Since(started).Seconds()
	if err := settle(ctx, p); err != nil {
		return err
	}
	u, err := usageOf(p)
	if err != nil {
		return err
	}
	b.add("start to ready, 80,000 unrelated Secrets in the source", ready, "s", "", "target ≤ 10")
	b.add("… to a ManagedResource applied", applied, "s", "", "")
	b.add("… resident memory then", u.RSS, "MiB", fmt.Sprintf("%.1f anonymous", u.Anonymous), "target ≤ 120")
	return nil
}
