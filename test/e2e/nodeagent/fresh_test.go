package nodeagent

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/must"
)

// TestFreshMachine: an agent finds its Node when the kubelet registers it, by an informer of the label of its host, and none of its requests
// is refused on the way (C9). Its rights end with its Machine (NA-11).
func TestFreshMachine(t *testing.T) {
	ctx := t.Context()
	machine := harness.Object("machine.sapcloud.io/v1alpha1", "Machine", harness.MachineNamespace, "fresh-machine")
	machine.SetLabels(map[string]string{"node": "fresh-node"})
	must.Succeed(t, sourceClient.Create(ctx, machine))
	config, err := shoot.RESTConfig("gardener.cloud:node-agent:machine:fresh-machine", "gardener.cloud:node-agents")
	must.Succeed(t, err)
	agents, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	selector := labels.Set{corev1.LabelHostname: "fresh-node"}.String()
	nodes := cache.NewFilteredListWatchFromClient(agents.CoreV1().RESTClient(), "nodes", "", func(o *metav1.ListOptions) { o.LabelSelector = selector })
	informer := cache.NewSharedInformer(nodes, &corev1.Node{}, 0)
	must.Succeed(t, informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { t.Errorf("C9: the informer failed: %v", err) }))
	done, failed := make(chan struct{}), make(chan struct{})
	go func() { defer close(failed); informer.Run(done) }()
	must.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), "C9: never synced")
	must.Succeed(t, shoot.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "fresh-node", Labels: map[string]string{corev1.LabelHostname: "fresh-node"}}}))
	must.Succeed(t, harness.Poll(ctx, patience, func() error {
		if _, found, err := informer.GetStore().GetByKey("fresh-node"); err != nil || !found {
			return fmt.Errorf("C9: the Node was not noticed: %v", err)
		}
		return nil
	}))
	close(done)
	<-failed
	cl, err := shoot.Agent("fresh-machine")
	must.Succeed(t, err)
	must.Succeed(t, cl.List(ctx, &corev1.NodeList{}))
	must.Succeed(t, sourceClient.Delete(ctx, machine))
	must.Succeed(t, harness.Poll(ctx, patience, func() error {
		for what, err := range map[string]error{
			"list nodes": cl.List(ctx, &corev1.NodeList{}),
			"own node":   cl.Get(ctx, client.ObjectKey{Name: "fresh-node"}, &corev1.Node{}),
			"Secret":     cl.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "gardener-valitail"}, &corev1.Secret{}),
		} {
			if !apierrors.IsForbidden(err) {
				return fmt.Errorf("NA-11: %s without a Machine: %v", what, err)
			}
		}
		return nil
	}))
}
