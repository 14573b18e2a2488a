package turns

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/rollout"
)

// Follow subscribes to the ManagedResources of an informer. The group lets nothing go before the informer has delivered
// all existing ManagedResources.
func (t *Turns) Follow(informer interface {
	AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)
}) error {
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.seen(object) },
		UpdateFunc: func(_, object any) { t.seen(object) },
		DeleteFunc: t.gone,
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced = registration.HasSynced
	return nil
}

func (t *Turns) seen(object any) {
	if mr, is := object.(*resourcesv1alpha1.ManagedResource); is {
		t.mu.Lock()
		defer t.mu.Unlock()
		key := types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
		if g := t.groups[t.groupOf[key]]; g != nil {
			if at, found := g.index[key]; found {
				g.members[at].version = 0 // The order of the watch counts, also after a restore of the source.
			}
		}
		t.takeLocked(mr)
	}
}

func (t *Turns) gone(object any) {
	if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	if mr, is := object.(*resourcesv1alpha1.ManagedResource); is {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.dropLocked(types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name})
	}
}

// follow follows the ConfigMaps of groups until the context ends.
func (t *Turns) follow(ctx context.Context) {
	client := t.Source.CoreV1().ConfigMaps(t.Namespace)
	selected := func(options metav1.ListOptions) metav1.ListOptions {
		options.LabelSelector = resourcesv1alpha1.LabelRolloutGroup
		return options
	}
	lists := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, selected(options))
			t.answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := client.Watch(ctx, selected(options))
			t.answered(err)
			return events, err
		},
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: toolscache.ToListWatcherWithWatchListSemantics(cluster.Gapless(lists), t.Source),
		ObjectType:    &corev1.ConfigMap{},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { t.configured(object) },
			UpdateFunc: func(_, object any) { t.configured(object) },
			DeleteFunc: t.unconfigured,
		},
	})
	t.mu.Lock()
	synced := t.synced
	t.mu.Unlock()
	// The lock is not held meanwhile: an informer holds a lock of its own while it calls handlers.
	go func() {
		if !toolscache.WaitForCacheSync(ctx.Done(), synced, informer.HasSynced) {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.known = true
		t.changedLocked(nil)
	}()
	informer.RunWithContext(ctx)
}

// answered records whether the ConfigMaps could be listed. Until the first successful list, the members report the
// error.
func (t *Turns) answered(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.configs) > 0 {
		err = nil // The last read configuration stays in force.
	}
	if (t.fault == nil) == (err == nil) {
		return
	}
	if t.fault = err; err != nil {
		t.Log.Error(err, "The ConfigMaps of roll-out groups cannot be read", "namespace", t.Namespace)
	}
	t.changedLocked(nil)
}

func (t *Turns) configured(object any) {
	cm, is := object.(*corev1.ConfigMap)
	if !is {
		return
	}
	read := config{uid: cm.UID}
	read.group, read.refuse = rollout.Parse(cm.Namespace+"/"+cm.Name, cm.Data, cm.Annotations)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.configs[cm.Name] = read
	if read.refuse != nil {
		t.Log.Error(read.refuse, "A roll-out group cannot be read; its members keep what they have")
	}
	t.reconfiguredLocked(cm.Name)
}

func (t *Turns) unconfigured(object any) {
	if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	if cm, is := object.(*corev1.ConfigMap); is {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.configs, cm.Name)
		t.reconfiguredLocked(cm.Name)
	}
}

func (t *Turns) reconfiguredLocked(name string) {
	if g := t.groups[name]; g != nil {
		g.roster = nil
		t.changedLocked(g)
	}
}

// Reasons of Events on the ConfigMap of a group.
const (
	reasonHalted  = "RolloutHalted"
	reasonResumed = "RolloutContinues"
)

// eventTimeout limits the request that writes an Event; no run waits for it.
const eventTimeout = 10 * time.Second

// tellLocked updates the metrics of a group, and writes an Event when the group is halted and when the halt has ended.
func (t *Turns) tellLocked(ctx context.Context, g *group, decision rollout.Decision, why error) {
	t.Metrics.show(g.name, decision, why)
	if why != nil || decision.Halted == g.halted {
		return
	}
	g.halted = decision.Halted
	kind, reason, message := corev1.EventTypeNormal, reasonResumed, "Nothing halts the roll-out group any more"
	if g.halted {
		t.Metrics.halts.WithLabelValues(g.name).Inc()
		kind, reason = corev1.EventTypeWarning, reasonHalted
		message = "The roll-out group is halted: " + rollout.Failures(decision.Failed)
	}
	t.Log.Info("Roll-out group", "group", g.name, "event", reason, "message", message)
	now := metav1.NewTime(t.Clock.Now())
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: meta.EventName(g.name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: t.Namespace, Name: g.name,
			UID: t.configs[g.name].uid},
		Type: kind, Reason: reason, Message: meta.Shortened(message, maxNote), Count: 1, FirstTimestamp: now,
		LastTimestamp:       now,
		Source:              corev1.EventSource{Component: "gardener-resource-manager"},
		ReportingController: "gardener-resource-manager",
	}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		defer cancel()
		if _, err := t.Source.CoreV1().Events(t.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
			t.Log.V(1).Info("Could not record an Event", "reason", err.Error())
		}
	}()
}

// maxNote is the longest message that an Event may have, in bytes; the API server refuses a longer one.
const maxNote = 1024
