package targets

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// period is the time between two looks at a folder: mounted Secrets change within a minute anyway.
const period = 5 * time.Second

// followNamespaces manages the namespaces with the labels until the context ends; it calls join once it follows the namespaces. When the work for a removed
// namespace has ended, followNamespaces decides about it once more: the namespace may have its labels again. It decides about all namespaces when the process
// may own other targets.
func (t *Targets) followNamespaces(ctx context.Context, join func() error) error {
	selected, err := metav1.LabelSelectorAsSelector(t.Config.Targets.NamespaceSelector)
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(namespaceKind)
	informer, err := t.Manager.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	context.AfterFunc(ctx, queue.ShutDown)
	latest := newLatest()
	registration, err := informer.AddEventHandler(latest.handler(queue.Add))
	if err != nil {
		return err
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	if t.sharing != nil {
		t.sharing.changed = func() {
			for _, name := range latest.names() {
				queue.Add(name)
			}
		}
	}
	if err := join(); err != nil {
		return err
	}
	for {
		name, over := queue.Get()
		if over {
			return nil
		}
		t.decide(ctx, name, latest.get(name), selected, func() { queue.Add(name) })
		queue.Done(name)
	}
}

// decide manages a namespace, or removes it if it does not have the labels. A namespace that is being deleted is managed until it is gone, because its
// ManagedResources wait for their objects.
func (t *Targets) decide(ctx context.Context, name string, namespace metav1.Object, selected labels.Selector, removed func()) {
	if namespace == nil || !selected.Matches(labels.Set(namespace.GetLabels())) || !t.sharing.keeps(name) {
		t.remove(name, removed)
		return
	}
	t.add(ctx, name, name, namespace.GetUID(), t.fromSecrets(name))
}

// followDirectory manages the entries of a folder until the context ends; it calls join before it reads the folder.
func (t *Targets) followDirectory(ctx context.Context, join func() error) error {
	changed := make(chan struct{}, 1)
	if t.sharing != nil {
		t.sharing.changed = func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
	if err := join(); err != nil {
		return err
	}
	for {
		if err := t.look(ctx); err != nil {
			t.Log.Error(err, "Folder of targets cannot be read; the targets known before are kept", "path", t.Config.Targets.Directory)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-t.Clock.After(period):
		}
	}
}

// look compares the folder with the targets that are managed.
func (t *Targets) look(ctx context.Context) error {
	files, err := os.ReadDir(t.Config.Targets.Directory)
	if err != nil {
		return err
	}
	present := []string{}
	for _, file := range files {
		name, is := strings.CutSuffix(file.Name(), suffix)
		if !is || name == "" || strings.HasPrefix(name, ".") {
			continue
		}
		present = append(present, name)
		if err := t.lookAt(ctx, name, filepath.Join(t.Config.Targets.Directory, file.Name())); err != nil {
			t.Log.Error(err, "Entry of a target cannot be used; its former entry is used", "target", name)
		}
	}
	for _, name := range t.names() {
		if !slices.Contains(present, name) || !t.sharing.keeps(name) {
			t.remove(name, func() {})
		}
	}
	return nil
}

// lookAt compares an entry with the target that is managed. An entry that names another namespace is another target: lookAt removes the former target, and
// the next look begins the new one.
func (t *Targets) lookAt(ctx context.Context, name, file string) error {
	namespace, resolve, err := t.fromEntry(file)
	if err != nil {
		return err
	}
	found, err := resolve(ctx)
	seen := fmt.Sprint(err)
	if err == nil {
		seen = fmt.Sprintf("%x", sha256.Sum256(append([]byte(found.token), found.digest[:]...)))
	}
	t.mu.Lock()
	m, other := t.members[name], ""
	for _, its := range t.members {
		if its != m && its.namespace == namespace {
			other = its.name
		}
	}
	changed := m != nil && m.seen != seen
	if changed {
		m.seen = seen
	}
	t.mu.Unlock()
	switch {
	case other != "" && (m == nil || m.namespace != namespace):
		return fmt.Errorf("namespace %s is that of target %s", namespace, other)
	case m == nil:
		t.add(ctx, name, namespace, "", resolve)
	case m.namespace != namespace:
		t.remove(name, func() {})
	case changed:
		m.notify()
	}
	return nil
}
