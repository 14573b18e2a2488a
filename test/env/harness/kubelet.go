package harness

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PlayKubelet does for all Pods of a cluster without Nodes what a kubelet would: it says that they run and are ready, and
// lets go of those that are to end. It returns when the context ends.
func PlayKubelet(ctx context.Context, c client.Client) {
	for ctx.Err() == nil {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods); err == nil {
			for i := range pods.Items {
				playKubelet(ctx, c, &pods.Items[i])
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// playKubelet looks after one Pod; whatever fails is tried again with the next list.
func playKubelet(ctx context.Context, c client.Client, pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		_ = c.Delete(ctx, pod, client.GracePeriodSeconds(0))
		return
	}
	if pod.Status.Phase == corev1.PodRunning {
		return
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	_ = c.Status().Update(ctx, pod)
}
