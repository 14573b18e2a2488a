package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
)

// TestOrphans: an object that carries our origin, as we wrote it, and is in no inventory is reported, and stays. The ReplicaSet of a Deployment carries
// a copy of its origin, and so does an object that another writer copied: neither is reported (MRB-54).
func TestOrphans(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// An audit of all kinds takes a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	f.managed("mr", deployment("d", ""))
	f.settled("mr")
	made := &appsv1.ReplicaSet{}
	f.eventually(func() error {
		list := &appsv1.ReplicaSetList{}
		if err := f.shoot.List(ctx, list, client.InNamespace(f.ns)); err != nil || len(list.Items) != 1 {
			return fmt.Errorf("%d ReplicaSets, %v", len(list.Items), err)
		}
		made = &list.Items[0]
		if made.Annotations[resourcesv1alpha1.AnnotationOrigin] == "" {
			return fmt.Errorf("kube-controller-manager has not copied the annotations: %v", made.Annotations)
		}
		return nil
	})
	config := rest.CopyConfig(landscape.ShootREST)
	config.UserAgent = filepath.Base(binary) + "/v0.1.0 (somewhere)"
	ours, err := client.New(config, client.Options{Scheme: f.shoot.Scheme()})
	f.must(err)
	replicaSet := func(name string, by client.Client) *appsv1.ReplicaSet {
		// No Deployment adopts it.
		labels := map[string]string{"app": name, resourcesv1alpha1.LabelManagedBy: made.Labels[resourcesv1alpha1.LabelManagedBy]}
		object := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name, Labels: labels, Annotations: made.Annotations},
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: made.Spec.Template.Spec}},
		}
		f.must(by.Create(ctx, object))
		return object
	}
	copied, orphan := replicaSet("copied", f.shoot), replicaSet("orphan", ours)
	f.must(harness.Poll(ctx, 3*time.Minute, func() error {
		events := &corev1.EventList{}
		f.must(f.seed.List(ctx, events, client.InNamespace(f.ns)))
		told := false
		for _, event := range events.Items {
			if event.Reason != "OrphansFound" {
				continue
			}
			if told = strings.Contains(event.Message, "(1): ReplicaSet "+f.ns+"/orphan."); !told {
				t.Errorf("MRB-54: %s", event.Message)
			}
		}
		if !told {
			return fmt.Errorf("the orphan is not reported")
		}
		return nil
	}))
	for _, object := range []*appsv1.ReplicaSet{made, copied, orphan} {
		current := &appsv1.ReplicaSet{}
		if err := f.shoot.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil || current.UID != object.UID || current.DeletionTimestamp != nil {
			t.Errorf("MRB-54: %s is not as it was: %v", object.Name, err)
		}
	}
}
