package highavailability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/node"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

const (
	// page is the number of workloads in a page of a list: an object has at most 1.5 MiB in etcd, so a page of
	// workloads has at most some 75 MiB, and the metadata of as many Namespaces less.
	page = 50
	// parallel is the number of concurrent patches. Webhooks of a tenant may delay each patch.
	parallel = 5
	// shown is the number of failures that an error names, and maxText the longest text of each, in bytes.
	shown   = 10
	maxText = 512
)

// wakeAll patches all workloads whose spread is for the other number of Nodes, and returns how many still have it
// then. Single failures do not stop it.
func (r *Reconciler) wakeAll(ctx context.Context, several bool) (int, error) {
	namespaces, err := r.namespaces(ctx)
	if err != nil {
		return 0, fmt.Errorf("listing Namespaces: %w", err)
	}
	w := &waking{Reconciler: r, several: several}
	for _, namespace := range namespaces {
		for _, list := range []func() client.ObjectList{deployments, statefulSets} {
			if err := w.wakeKind(ctx, namespace, list); err != nil {
				w.fail(fmt.Errorf("listing workloads of namespace %s: %w", namespace, err))
			}
		}
	}
	return int(w.left.Load()), w.joined()
}

// namespaces returns the namespaces to check (NHA-3): kube-system first, as anyone may have set the labels of the
// others, and then by name.
func (r *Reconciler) namespaces(ctx context.Context) ([]string, error) {
	var names []string
	list := func() client.ObjectList {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
		return l
	}
	err := r.each(ctx, list, func(l client.ObjectList) {
		for i := range l.(*metav1.PartialObjectMetadataList).Items {
			name := l.(*metav1.PartialObjectMetadataList).Items[i].Name
			if len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, name) {
				names = append(names, name)
			}
		}
	}, client.MatchingLabels{node.LabelConsider: "true"})
	slices.SortFunc(names, func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == metav1.NamespaceSystem:
			return -1
		case b == metav1.NamespaceSystem:
			return 1
		}
		return strings.Compare(a, b)
	})
	return names, err
}

// each calls visit with each page of a list.
func (r *Reconciler) each(ctx context.Context, list func() client.ObjectList, visit func(client.ObjectList), options ...client.ListOption) error {
	for token := ""; ; {
		found := list()
		if err := r.Live.List(ctx, found, append([]client.ListOption{client.Limit(page), client.Continue(token)}, options...)...); err != nil {
			return err
		}
		visit(found)
		if token = found.GetContinue(); token == "" {
			return nil
		}
	}
}

type waking struct {
	*Reconciler
	several bool
	// left counts the workloads that the webhook left unchanged.
	left atomic.Int64
	// failed are the first failures; failures is the number of all.
	failed   []error
	failures int
}

func (w *waking) fail(err error) {
	if w.failures++; len(w.failed) < shown {
		w.failed = append(w.failed, errors.New(meta.Shortened(err.Error(), maxText)))
	}
}

func (w *waking) joined() error {
	if more := w.failures - len(w.failed); more > 0 {
		return errors.Join(append(w.failed, fmt.Errorf("and %d more", more))...)
	}
	return errors.Join(w.failed...)
}

// unskipped selects the workloads that the webhook handles (NHA-3).
var unskipped = func() labels.Selector {
	skip, err := labels.NewRequirement(node.LabelSkip, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // It has only constants.
	}
	return labels.NewSelector().Add(*skip)
}()

// wakeKind patches the workloads of a kind in a namespace, page by page.
func (w *waking) wakeKind(ctx context.Context, namespace string, list func() client.ObjectList) error {
	return w.each(ctx, list, func(l client.ObjectList) {
		outdated := slices.DeleteFunc(workloads(l), func(load workload) bool { return !load.outdated(w.several) })
		for _, err := range kit.Parallel(ctx, parallel, len(outdated), func(i int) error { return w.wake(ctx, outdated[i]) }) {
			w.fail(err)
		}
	}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: unskipped})
}

// wake sends an empty patch to a workload, and checks the result of the webhook.
func (w *waking) wake(ctx context.Context, load workload) error {
	err := w.Live.Patch(ctx, load.Object, client.RawPatch(types.MergePatchType, []byte("{}")))
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("%T %s: %w", load.Object, client.ObjectKeyFromObject(load.Object), err)
	case err == nil && load.outdated(w.several):
		w.left.Add(1)
	}
	return nil
}

func deployments() client.ObjectList  { return &appsv1.DeploymentList{} }
func statefulSets() client.ObjectList { return &appsv1.StatefulSetList{} }

// workload is a Deployment or StatefulSet; template is its Pod template.
type workload struct {
	client.Object
	template *corev1.PodTemplateSpec
}

func (w workload) outdated(several bool) bool {
	return node.Outdated(w.template.Spec.TopologySpreadConstraints, several)
}

// workloads returns the Deployments or StatefulSets of a list.
func workloads(list client.ObjectList) []workload {
	var all []workload
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		for i := range l.Items {
			all = append(all, workload{&l.Items[i], &l.Items[i].Spec.Template})
		}
	case *appsv1.StatefulSetList:
		for i := range l.Items {
			all = append(all, workload{&l.Items[i], &l.Items[i].Spec.Template})
		}
	}
	return all
}
