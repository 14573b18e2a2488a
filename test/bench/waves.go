package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/harness"
)

// Of waves: a group of so many members, of which one in brokenEvery cannot apply the new content. The first wave has a tenth.
const (
	waveMembers, brokenEvery, firstWave = 500, 20, 10
)

// waves measures a roll-out group whose new content is broken in one of twenty members: how many get it, and what it costs until all others say that they
// are halted. How long a halt takes is a test (ROL-5).
func waves(ctx context.Context, b *bench) error {
	group := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "group", Labels: map[string]string{resourcesv1alpha1.LabelRolloutGroup: ""}},
		Data:       map[string]string{"waves": fmt.Sprintf("- untilPercent: %d\n", firstWave), "pause": "1m", "maxUnavailable": "5"},
	}
	if err := b.SeedClient.Create(ctx, group); err != nil {
		return err
	}
	if err := parallel(waveMembers, 8, func(i int) error { return b.createMember(ctx, i) }); err != nil {
		return err
	}
	p, err := b.startReady(ctx, map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"rolloutGroupNamespace": metav1.NamespaceDefault}}})
	if err != nil {
		return err
	}
	defer p.Stop()
	if err := b.awaitMembers(ctx, func(mr *resourcesv1alpha1.ManagedResource) bool { return harness.Settled(mr) == nil }); err != nil {
		return err
	}
	if err := settle(ctx, p); err != nil {
		return err
	}
	before := requests(p)
	if err := parallel(waveMembers, 8, func(i int) error { return b.deliver(ctx, i) }); err != nil {
		return err
	}
	touched := 0
	err = b.awaitMembers(ctx, func(mr *resourcesv1alpha1.ManagedResource) bool {
		held, _ := harness.Condition(mr, resourcesv1alpha1.RolloutHeld)
		return strings.HasPrefix(held, "False/") || held == "True/RolloutHalted"
	})
	if err != nil {
		return err
	}
	if err := settle(ctx, p); err != nil {
		return err
	}
	objects := &corev1.ConfigMapList{}
	if err := b.ShootClient.List(ctx, objects, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		return err
	}
	for i := range objects.Items {
		if objects.Items[i].Data["v"] == "two" {
			touched++
		}
	}
	b.add(fmt.Sprintf("roll-out group of %d, 1 in %d broken: members touched", waveMembers, brokenEvery), float64(touched), "members", "",
		fmt.Sprintf("the first wave has %d", waveMembers*firstWave/100))
	b.add("requests for each member until all say that they are halted", (requests(p)-before)/waveMembers, "requests", "", "")
	return nil
}

func memberName(i int) string { return fmt.Sprintf("member-%03d", i) }

func memberManifest(i int, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {v: %s}\n", memberName(i), value)
}

// createMember creates a namespace with a member of the group.
func (b *bench) createMember(ctx context.Context, i int) error {
	name := memberName(i)
	if err := b.SeedClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	if err := b.SeedClient.Create(ctx, harness.Secret(name, "one", map[string][]byte{"data.yaml": []byte(memberManifest(i, "one"))})); err != nil {
		return err
	}
	mr := harness.ManagedResource(name, "member", "one")
	mr.Labels, mr.Annotations = map[string]string{"member": name}, map[string]string{resourcesv1alpha1.AnnotationRolloutGroup: "group"}
	return b.SeedClient.Create(ctx, mr)
}

// deliver writes the new content of a member in a Secret of another name.
func (b *bench) deliver(ctx context.Context, i int) error {
	name, manifest := memberName(i), memberManifest(i, "two")
	if i%brokenEvery == 0 {
		manifest += "---\napiVersion: example.com/v1\nkind: NotServed\nmetadata: {name: x}\n"
	}
	if err := b.SeedClient.Create(ctx, harness.Secret(name, "two", map[string][]byte{"data.yaml": []byte(manifest)})); err != nil {
		return err
	}
	spec := map[string]any{"spec": map[string]any{"secretRefs": []any{map[string]any{"name": "two"}}}}
	return b.SeedClient.Patch(ctx, harness.ManagedResource(name, "member"), harness.MergePatch(spec))
}

// awaitMembers waits until something holds of each member.
func (b *bench) awaitMembers(ctx context.Context, holds func(*resourcesv1alpha1.ManagedResource) bool) error {
	return harness.Poll(ctx, 5*time.Minute, func() error {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := b.SeedClient.List(ctx, list, client.HasLabels{"member"}); err != nil {
			return err
		}
		missing := 0
		for i := range list.Items {
			if !holds(&list.Items[i]) {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d members are not there yet", missing)
		}
		return nil
	})
}
