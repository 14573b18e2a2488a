package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// given has the objects of files.
type given struct {
	managedResource *resourcesv1alpha1.ManagedResource
	secrets         map[types.NamespacedName]*corev1.Secret
	manifests       decode.Result
}

// mostBytes limits a file to more than a ManagedResource and its Secrets may have in etcd.
const mostBytes = 16 << 20

// readFiles decodes files as resource-manager decodes manifests.
func readFiles(files diffFiles) (*given, error) {
	g := &given{secrets: map[types.NamespacedName]*corev1.Secret{}}
	for _, file := range files.secrets {
		objects, err := readFile(file)
		if err != nil {
			return nil, err
		}
		for _, object := range objects.Objects {
			if object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
				return nil, fmt.Errorf("%s holds a %s: --secret takes Secrets", file, object.GetKind())
			}
			if err := g.addSecret(object); err != nil {
				return nil, err
			}
		}
	}
	if files.manifests == "" {
		return g, nil
	}
	objects, err := readFile(files.manifests)
	if err != nil {
		return nil, err
	}
	return g, g.take(objects)
}

// take sorts the objects of a file. If it has a ManagedResource, its Secrets belong to that, and are not manifests.
func (g *given) take(objects decode.Result) error {
	ofKind := func(object decode.Object) bool {
		return object.GetKind() == "ManagedResource" && object.GroupVersionKind().Group == resourcesv1alpha1.SchemeGroupVersion.Group
	}
	if !slices.ContainsFunc(objects.Objects, ofKind) {
		g.manifests = objects
		return nil
	}
	for _, object := range objects.Objects {
		switch {
		case ofKind(object) && g.managedResource != nil:
			return errors.New("the file holds several ManagedResources: one at a time is compared")
		case ofKind(object):
			mr, err := typed[resourcesv1alpha1.ManagedResource](object.Unstructured)
			if err != nil {
				return err
			}
			g.managedResource = mr
		case object.GetKind() == "Secret" && object.GetAPIVersion() == "v1":
			if err := g.addSecret(object); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the file holds a ManagedResource, and a %s that is none of its Secrets", object.GetKind())
		}
	}
	return nil
}

func (g *given) addSecret(object decode.Object) error {
	secret, err := asSecret(object.Unstructured)
	if err != nil {
		return err
	}
	g.secrets[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = secret
	return nil
}

// secret returns the Secret with a name from a file; its namespace may be left out there.
func (g *given) secret(namespace, name string) *corev1.Secret {
	if secret := g.secrets[types.NamespacedName{Namespace: namespace, Name: name}]; secret != nil {
		return secret
	}
	return g.secrets[types.NamespacedName{Name: name}]
}

func readFile(file string) (decode.Result, error) {
	in := io.Reader(os.Stdin)
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return decode.Result{}, err
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	content, err := io.ReadAll(io.LimitReader(in, mostBytes+1))
	if err != nil {
		return decode.Result{}, err
	}
	if len(content) > mostBytes {
		return decode.Result{}, fmt.Errorf("%s has more than %d MiB", file, mostBytes>>20)
	}
	objects, err := decode.Decode(context.Background(), []decode.Source{{Secret: types.NamespacedName{Name: "file"}, Data: map[string][]byte{file: content}}})
	if err == nil && len(objects.Errors) > 0 {
		err = fmt.Errorf("%s, document %d: %w", file, objects.Errors[0].Place.Index, objects.Errors[0].Err)
	}
	return objects, err
}

// runReader reads the input of a run.
type runReader struct {
	*clusters
	given *given
}

func (r *runReader) readOwner(ctx context.Context, namespace, name string) (*resourcesv1alpha1.ManagedResource, error) {
	q := question{clusters: r.clusters}
	return q.readNamed(ctx, types.NamespacedName{Namespace: namespace, Name: name})
}

// managedResource adds the changes that the next run of a ManagedResource would make.
func (r *runReader) managedResource(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, found *differing) error {
	if text := note(mr); text != "" {
		found.Notes = append(found.Notes, text)
	}
	secrets, unread := r.secrets(ctx, mr)
	if len(unread) > 0 {
		return errors.New(strings.Join(unread, "; "))
	}
	decoded, err := inspect.Decode(ctx, mr, secrets)
	if err != nil {
		return err
	}
	if len(decoded.Errors) > 0 { // The decodable documents are applied all the same.
		found.Faults = append(found.Faults, decode.ErrorsMessage(decoded.Errors))
	}
	if mr.DeletionTimestamp != nil { // Its manifests are not applied any more.
		decoded = decode.Result{}
		if mr.Spec.KeepObjects != nil && *mr.Spec.KeepObjects {
			found.Notes = append(found.Notes, "its objects stay: spec.keepObjects is set")
			return nil
		}
	}
	return r.run(ctx, mr, decoded, mr.Status.Resources, found)
}

// secrets returns the Secrets that a ManagedResource names: from files, else from the source.
func (r *runReader) secrets(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (map[string]*corev1.Secret, []string) {
	rest := mr.DeepCopy()
	rest.Spec.SecretRefs = slices.DeleteFunc(rest.Spec.SecretRefs, func(ref corev1.LocalObjectReference) bool { return r.given.secret(mr.Namespace, ref.Name) != nil })
	secrets, unread := r.source.secretsOf(ctx, rest)
	for _, ref := range mr.Spec.SecretRefs {
		if secret := r.given.secret(mr.Namespace, ref.Name); secret != nil {
			secrets[ref.Name] = secret
		}
	}
	return secrets, unread
}

// run adds the changes that a run with these manifests and this inventory would make.
func (r *runReader) run(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, decoded decode.Result, inventory []resourcesv1alpha1.ObjectReference, found *differing) error {
	settings := inspect.SettingsOf(mr)
	planned := plan.NewPlan(decoded, inventory, settings.PlanOptions(mr, func(gvk schema.GroupVersionKind) (plan.Scope, error) {
		k, err := r.target.served(ctx, gvk)
		if err != nil || k == nil {
			return plan.ScopeUnknown, err
		}
		return k.scope(), nil
	}))
	run := &inspect.Run{Now: time.Now(), ManagedResource: mr, Planned: planned}
	r.readObjects(ctx, run)
	if err := ctx.Err(); err != nil {
		return err
	}
	if run.NeedsOthers() {
		objects, err := r.source.list(ctx, managedResources, "", metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("looking for other ManagedResources that have the objects: %w", err)
		}
		if run.Others, err = typedAll[resourcesv1alpha1.ManagedResource](objects); err != nil {
			return err
		}
	}
	changes, faults := run.Changes()
	more, err := r.refine(ctx, run, changes)
	if err != nil {
		return err
	}
	if more {
		changes, faults = run.Changes()
	}
	found.Changes, found.Faults = append(found.Changes, changes...), append(found.Faults, faults...)
	return nil
}

// readObjects reads every object that a run would read.
func (r *runReader) readObjects(ctx context.Context, run *inspect.Run) {
	run.Live, run.Unread = map[objects.ID]*unstructured.Unstructured{}, map[objects.ID]error{}
	refs := map[objects.ID]*resourcesv1alpha1.ObjectReference{}
	for _, desired := range run.Planned.Apply {
		refs[desired.Ref.ID] = &desired.Reference
	}
	for _, left := range [][]resourcesv1alpha1.ObjectReference{run.Planned.Delete, run.Planned.Release} {
		for i := range left {
			refs[objects.IDOfEntry(&left[i])] = &left[i]
		}
	}
	keys := slices.Collect(maps.Keys(refs))
	var mu sync.Mutex
	parallel(len(keys), keys, func(key objects.ID) {
		live, err := r.readObject(ctx, refs[key])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			run.Unread[key] = err
		case live != nil:
			run.Live[key] = live
		}
	})
}

// readObject reads the object of a reference; nil if it does not exist, or its kind is not served.
func (r *runReader) readObject(ctx context.Context, ref *resourcesv1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	k, err := r.target.served(ctx, ref.GroupVersionKind())
	if err != nil || k == nil {
		return nil, err
	}
	live, err := r.target.get(ctx, k.Resource, k.within(ref.Namespace), ref.Name)
	switch {
	case isUnserved(err):
		return nil, fmt.Errorf("the target does not serve %s", ref.GroupVersionKind())
	case apierrors.IsNotFound(err):
		return nil, nil
	}
	return live, err
}

// refine reads the objects that may explain differences, and reports whether it read any: autoscalers, and definitions
// of custom resources.
func (r *runReader) refine(ctx context.Context, run *inspect.Run, changes []inspect.Change) (more bool, err error) {
	for i := range changes {
		c := &changes[i]
		if c.Action != inspect.Update {
			continue
		}
		gvk := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)
		replicas := slices.ContainsFunc(c.Differences, func(d inspect.Difference) bool { return d.Path == "spec.replicas" })
		switch {
		case replicas && (merge.HasReplicas(gvk.Group, gvk.Kind) || isCustom(gvk.Group)) && run.Scaled == nil:
			if run.Scaled, err = r.target.scaled(ctx, ""); err != nil {
				return false, fmt.Errorf("looking for autoscalers: %w", err)
			}
			more = true
		case isCustom(gvk.Group):
			if err := r.readDefaults(ctx, run, gvk); err != nil {
				return false, err
			}
			more = true
		}
	}
	return more, nil
}

func (r *runReader) readDefaults(ctx context.Context, run *inspect.Run, gvk schema.GroupVersionKind) error {
	if _, known := run.Defaults[gvk]; known {
		return nil
	}
	if run.Defaults == nil {
		run.Defaults = map[schema.GroupVersionKind]merge.CustomDefaults{}
	}
	run.Defaults[gvk] = merge.CustomDefaults{}
	k, err := r.target.served(ctx, gvk)
	if err != nil || k == nil {
		return err
	}
	definition, err := r.target.definitionOf(ctx, k)
	if definition != nil {
		run.Defaults[gvk] = merge.NewCustomDefaults(definition, gvk.Version)
	}
	return err
}

// manifests compares the objects of a file one by one, each as a manifest of the ManagedResource of the live object.
// Nothing is deleted.
func (r *runReader) manifests(ctx context.Context) (*differing, error) {
	found := &differing{}
	owners := map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{}
	manifests := map[types.NamespacedName]decode.Result{}
	for _, object := range r.given.manifests.Objects {
		owner, err := r.ownerOfManifest(ctx, object, owners)
		if err != nil {
			return nil, err
		}
		of := manifests[owner]
		of.Objects = append(of.Objects, object)
		manifests[owner] = of
	}
	inOrder := func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
	for _, key := range slices.SortedFunc(maps.Keys(manifests), inOrder) {
		mr := owners[key]
		if text := note(mr); text != "" {
			found.Notes = append(found.Notes, text)
		}
		if err := r.run(ctx, mr, manifests[key], entriesOf(mr, manifests[key]), found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// entriesOf returns the entries of an inventory about objects of manifests.
func entriesOf(mr *resourcesv1alpha1.ManagedResource, manifests decode.Result) []resourcesv1alpha1.ObjectReference {
	var entries []resourcesv1alpha1.ObjectReference
	for _, object := range manifests.Objects {
		if entry := inspect.EntryOf(mr, objects.IDOf(object.Unstructured), object.GetNamespace() == ""); entry != nil {
			entries = append(entries, *entry)
		}
	}
	return entries
}

// newOwner is the name of the ManagedResource for which objects without an owner are compared.
const newOwner = "new"

// ownerOfManifest returns the ManagedResource that manages the object of a manifest; a new ManagedResource if the
// object has no owner.
func (r *runReader) ownerOfManifest(ctx context.Context, object decode.Object, known map[types.NamespacedName]*resourcesv1alpha1.ManagedResource) (types.NamespacedName, error) {
	nobody := types.NamespacedName{Namespace: r.namespace, Name: newOwner}
	if known[nobody] == nil {
		known[nobody] = &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: nobody.Namespace, Name: nobody.Name}}
	}
	k, err := r.target.served(ctx, object.GroupVersionKind())
	if err != nil || k == nil {
		return nobody, err
	}
	switch { // The plan does the same.
	case !k.namespaced():
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(metav1.NamespaceDefault)
	}
	live, err := r.target.get(ctx, k.Resource, object.GetNamespace(), object.GetName())
	if apierrors.IsNotFound(err) {
		return nobody, nil
	}
	if err != nil {
		return nobody, err
	}
	origin, found := inspect.OriginOf(live)
	if !found {
		return nobody, nil
	}
	if known[origin.Key] == nil {
		mr, err := r.readOwner(ctx, origin.Key.Namespace, origin.Key.Name)
		if err != nil || mr == nil {
			return nobody, err
		}
		known[origin.Key] = mr
	}
	return origin.Key, nil
}
