package targets

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// period is the interval of reading a folder: mounted Secrets change within a minute anyway.
const period = 5 * time.Second

// followNamespaces offers the namespaces with the labels until the context ends. A namespace that is being deleted
// stays a target until it is gone, because its ManagedResources wait for their objects.
func (t *Targets) followNamespaces(ctx context.Context) error {
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
	note := func(reported any, there bool) {
		if lost, is := reported.(toolscache.DeletedFinalStateUnknown); is {
			reported = lost.Obj
		}
		namespace, is := reported.(metav1.Object)
		if !is || ctx.Err() != nil {
			return
		}
		name := namespace.GetName()
		if !there || !selected.Matches(labels.Set(namespace.GetLabels())) {
			t.withdraw(name)
			return
		}
		_ = t.offer(ctx, name, name, namespace.GetUID(), t.fromSecrets(name), "") // No two namespaces have one name.
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { note(object, true) }, UpdateFunc: func(_, object any) { note(object, true) },
		DeleteFunc: func(object any) { note(object, false) },
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(registration)
}

// followDirectory offers the entries of a folder until the context ends.
func (t *Targets) followDirectory(ctx context.Context) error {
	for {
		if err := t.look(ctx); err != nil {
			t.Log.Error(err, "Folder of targets cannot be read; the targets known before are kept", "path",
				t.Config.Targets.Directory)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.Clock.After(period):
		}
	}
}

// entries returns the files of the folder by the names of their targets.
func (t *Targets) entries() (map[string]string, error) {
	files, err := os.ReadDir(t.Config.Targets.Directory)
	if err != nil {
		return nil, err
	}
	present := map[string]string{}
	for _, file := range files {
		if name, is := strings.CutSuffix(file.Name(), suffix); is && name != "" && !strings.HasPrefix(name, ".") {
			present[name] = filepath.Join(t.Config.Targets.Directory, file.Name())
		}
	}
	return present, nil
}

// look compares the folder with the targets.
func (t *Targets) look(ctx context.Context) error {
	present, err := t.entries()
	if err != nil {
		return err
	}
	previous := map[string]string{}
	for _, c := range t.offered() {
		previous[c.name] = c.namespace
		if present[c.name] == "" {
			t.withdraw(c.namespace)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if err := t.lookAt(ctx, name, previous[name], present[name]); err != nil {
			t.Log.Error(err, "Entry of a target cannot be used; its former entry is used", "target", name)
		}
	}
	return nil
}

// lookAt offers the namespace of an entry, in place of the namespace that it named before.
func (t *Targets) lookAt(ctx context.Context, name, previous, file string) error {
	namespace, resolve, err := t.fromEntry(file)
	if err != nil {
		return err
	}
	if previous != "" && previous != namespace {
		t.withdraw(previous)
	}
	found, err := resolve(ctx)
	seen := fmt.Sprint(err)
	if err == nil {
		seen = fmt.Sprintf("%x", sha256.Sum256(append([]byte(found.token), found.digest[:]...)))
	}
	return t.offer(ctx, name, namespace, "", resolve, seen)
}
