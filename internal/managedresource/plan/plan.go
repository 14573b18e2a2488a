package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	typed "github.com/espalier-project/espalier/internal/managedresource/schema"
)

// Scope is the scope of a kind: with or without namespaces.
type Scope int

// ScopeUnknown is the scope of a kind that the target does not serve (MRD-9).
const (
	ScopeUnknown Scope = iota
	ScopeNamespaced
	ScopeCluster
)

// Options are the properties of the ManagedResource and of the configuration that the plan depends on.
type Options struct {
	Spec                *resourcesv1alpha1.ManagedResourceSpec
	Origin              string
	ManagedByLabelValue string
	// Scope returns the scope of a kind, ScopeUnknown if the target does not serve it. An error counts as an error of
	// the object.
	Scope func(schema.GroupVersionKind) (Scope, error)
}

// Desired is the desired state of an object, before it is merged with the live one.
type Desired struct {
	*unstructured.Unstructured
	Place decode.Place
	// Old is the inventory entry of the object at its last apply, or nil.
	Old *resourcesv1alpha1.ObjectReference
	// Reference is the new inventory entry of the object.
	Reference resourcesv1alpha1.ObjectReference
	// Ref is the object of Reference.
	Ref objects.Ref
	// CreateOnly is true for an object with the ignore annotation (MR-30).
	CreateOnly bool
	// hadHold is true if the manifest had annotations of a hold, which have an effect on live objects only.
	hadHold bool
}

// IsNew reports whether the inventory has no entry for the object, or only a tentative one.
func (d *Desired) IsNew() bool { return d.Old == nil || meta.Tentative(d.Old) }

// Name returns the name of the object in messages.
func (d *Desired) Name() string { return NameOf(d.Unstructured) }

// Plan lists the changes to the objects of a ManagedResource.
type Plan struct {
	// Apply are the objects to create or update, in the order of MR-22.
	Apply []*Desired
	// Release are inventory entries whose objects must be released (mode Ignore, MRO-2).
	Release []resourcesv1alpha1.ObjectReference
	// Delete are inventory entries that no manifest has any more (MR-10).
	Delete []resourcesv1alpha1.ObjectReference
	// Unmatched are inventory entries that must be kept, although no object of this plan matches them: while a
	// document cannot be decoded, it may describe any object (MRB-2).
	Unmatched []resourcesv1alpha1.ObjectReference
	// Inventory is the inventory after the plan was carried out, sorted (MRS-7).
	Inventory []resourcesv1alpha1.ObjectReference
	// Errors are errors of objects that cannot be applied.
	Errors []error
	// Warnings are mistakes in manifests that have an effect only later.
	Warnings []string
}

// NewPlan prepares the decoded objects and compares them with the inventory. An invalid object causes an error, but
// does not affect other objects.
func NewPlan(decoded decode.Result, inventory []resourcesv1alpha1.ObjectReference, options Options) *Plan {
	p := &planning{
		Plan: &Plan{}, options: options,
		scopes: scopes{ask: options.Scope, defined: definedScopes(decoded.Objects),
			known: map[schema.GroupVersionKind]scopeAnswer{}},
		index:     newInventoryIndex(inventory, NewEquivalences(options.Spec.Equivalences)),
		described: map[objects.ID]*description{},
	}
	for _, object := range decoded.Objects {
		if err := p.add(object); err != nil {
			p.Errors = append(p.Errors, err)
		}
	}
	p.assign()
	slices.SortStableFunc(p.Apply,
		func(a, b *Desired) int { return Compare(a.GetKind(), a.GetName(), b.GetKind(), b.GetName()) })
	// If any document could not be read, nothing is deleted, because the document may describe the object (MRB-2).
	if len(decoded.Errors) > 0 || len(p.Errors) > 0 {
		p.Unmatched = append(p.Unmatched, p.index.rest()...)
	} else {
		p.Delete = p.index.rest()
	}
	p.Inventory = append(p.Inventory, p.Unmatched...)
	SortReferences(p.Inventory)
	return p.Plan
}

// planning is a Plan in progress.
type planning struct {
	*Plan
	options   Options
	scopes    scopes
	index     *inventoryIndex
	described map[objects.ID]*description
	// desired are the objects to apply, released the objects to release.
	desired  []*Desired
	released []*description
}

// description is the manifest of an object. twice is true if another manifest describes the same object; entries are
// the inventory entries of an object to release.
type description struct {
	place   decode.Place
	twice   bool
	entries []resourcesv1alpha1.ObjectReference
}

// add prepares an object, and marks its inventory entries as matched.
func (p *planning) add(object decode.Object) error {
	if err := checkIdentity(object); err != nil {
		return err
	}
	scope, err := p.scopes.of(object.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("error during apply of object %q: %w", NameOf(object.Unstructured), err)
	}
	completed := complete(object, scope, p.options)
	key := completed.Ref.ID
	if first := p.described[key]; first != nil {
		first.twice = true
		return fmt.Errorf("error during apply of object %q: the object is described twice, at %s and at %s", completed.Name(),
			first.place, object.Place)
	}
	its := &description{place: object.Place}
	p.described[key] = its
	if object.Released() {
		its.entries = p.index.takeAll(key, scope)
		p.released = append(p.released, its)
		return nil
	}
	completed.Old = p.index.take(key)
	if completed.CreateOnly && scope == ScopeCluster && completed.IsNew() {
		completed.Old = cmp.Or(p.index.recordInOtherScope(key), completed.Old)
	}
	completed.recallCreation()
	p.desired = append(p.desired, completed)
	return nil
}

// assign adds the objects to the plan. It keeps the entries of an object that is described twice, because it is
// unknown which manifest is right.
func (p *planning) assign() {
	for _, its := range p.released {
		if its.twice {
			p.Unmatched = append(p.Unmatched, its.entries...)
		} else {
			p.Release = append(p.Release, its.entries...)
		}
	}
	for _, object := range p.desired {
		if p.described[object.Ref.ID].twice {
			if object.Old != nil {
				p.Unmatched = append(p.Unmatched, *object.Old)
			}
			continue
		}
		p.Apply = append(p.Apply, object)
		p.Inventory = append(p.Inventory, object.Reference)
		p.Warnings = append(p.Warnings, warnings(object)...)
	}
}

// scopes caches the scopes of kinds, so that each is looked up once.
type scopes struct {
	ask     func(schema.GroupVersionKind) (Scope, error)
	defined map[schema.GroupKind]Scope
	known   map[schema.GroupVersionKind]scopeAnswer
}

type scopeAnswer struct {
	scope Scope
	err   error
}

func (s scopes) of(gvk schema.GroupVersionKind) (Scope, error) {
	answer, found := s.known[gvk]
	if !found {
		answer.scope, answer.err = s.ask(gvk)
		if answer.err == nil && answer.scope == ScopeUnknown {
			answer.scope = s.defined[gvk.GroupKind()]
		}
		s.known[gvk] = answer
	}
	return answer.scope, answer.err
}

// definedScopes returns the scopes of the kinds that the manifests themselves define, so that the inventory has the
// right namespace of their objects even before the target serves the kind.
func definedScopes(objects []decode.Object) map[schema.GroupKind]Scope {
	scopes := map[schema.GroupKind]Scope{}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" || object.GroupVersionKind().Group != "apiextensions.k8s.io" {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		switch scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope"); scope {
		case "Cluster":
			scopes[schema.GroupKind{Group: group, Kind: kind}] = ScopeCluster
		case "Namespaced":
			scopes[schema.GroupKind{Group: group, Kind: kind}] = ScopeNamespaced
		}
	}
	return scopes
}

// recallCreation copies the record of an object that is created only once from the inventory: whether it was created,
// and its UID.
func (d *Desired) recallCreation() {
	if d.CreateOnly && d.Old != nil && meta.Truthy(d.Old.Annotations, resourcesv1alpha1.AnnotationIgnore) {
		d.Reference.FieldPath, d.Reference.UID = d.Old.FieldPath, d.Old.UID
		if d.Old.UID == "" && d.Old.Namespace != d.Reference.Namespace {
			// An entry without a UID identifies the object by namespace and name, but the scope of its kind has
			// changed.
			d.Reference = meta.AsTentative(d.Reference)
		}
	}
}

// Pending returns the inventory to write before the first object is written: all existing and all planned entries. An
// existing entry keeps its old labels and annotations until its object is applied (MRB-3), and also has the new ones.
//
// A new entry is tentative until then, because an object of another ManagedResource is taken over only by the first
// write that succeeds (MRB-16).
func (p *Plan) Pending(inventory []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	pending := slices.Clone(inventory)
	known := make(map[objects.ID]int, len(inventory))
	for i := range inventory {
		known[objects.IDOfEntry(&inventory[i])] = i
	}
	for _, object := range p.Apply {
		if i, found := known[object.Ref.ID]; found {
			if pending[i].Namespace != object.Reference.Namespace && pending[i].UID == "" &&
				meta.Truthy(pending[i].Annotations, resourcesv1alpha1.AnnotationIgnore) {
				pending[i] = meta.AsTentative(pending[i]) // As in recallCreation.
			}
			pending[i].Namespace = object.Reference.Namespace // The scope of its kind may have changed.
			if !object.CreateOnly {
				pending[i].Labels = withMore(pending[i].Labels, object.Reference.Labels)
				pending[i].Annotations = withMore(pending[i].Annotations, object.Reference.Annotations)
			}
		} else {
			pending = append(pending, meta.AsTentative(object.Reference))
		}
	}
	released := make(map[objects.ID]struct{}, len(p.Release))
	for i := range p.Release {
		released[objects.IDOfEntry(&p.Release[i])] = struct{}{}
	}
	for at := range pending {
		// The entry is the only proof of ownership, and must not be one after the object was released.
		if _, found := released[objects.IDOfEntry(&pending[at])]; found &&
			meta.Truthy(pending[at].Annotations, resourcesv1alpha1.AnnotationIgnore) {
			pending[at] = meta.AsTentative(pending[at])
		}
	}
	SortReferences(pending)
	return pending
}

// withMore returns present with the missing keys of more.
func withMore(present, more map[string]string) map[string]string {
	both := maps.Clone(more)
	if both == nil {
		return present
	}
	maps.Copy(both, present)
	return both
}

// Keys returns the keys of the objects to apply.
func (p *Plan) Keys() []objects.ID {
	keys := make([]objects.ID, len(p.Apply))
	for i, object := range p.Apply {
		keys[i] = object.Ref.ID
	}
	return keys
}

// CanExist reports whether an API server can have an object with this name. Otherwise it need not be deleted.
func CanExist(ref *corev1.ObjectReference) bool {
	_, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.APIVersion != "" && ref.Kind != "" && ref.Name != "" &&
		len(content.IsPathSegmentName(ref.Name)) == 0 && len(content.IsPathSegmentName(ref.Namespace)) == 0
}

func checkIdentity(object decode.Object) error {
	switch {
	case object.GetKind() == "":
		return fmt.Errorf("error during apply of object %q: Object 'Kind' is missing at %s", NameOf(object.Unstructured),
			object.Place)
	case object.GetAPIVersion() == "":
		return fmt.Errorf("error during apply of object %q: Object 'apiVersion' is missing at %s",
			NameOf(object.Unstructured), object.Place)
	case object.GetName() == "":
		return fmt.Errorf("error during apply of object %q: metadata.name is missing at %s (generateName is not supported)",
			NameOf(object.Unstructured), object.Place)
	}
	for field, segment := range map[string]string{"metadata.name": object.GetName(),
		"metadata.namespace": object.GetNamespace()} {
		if faults := content.IsPathSegmentName(segment); len(faults) > 0 {
			return fmt.Errorf("error during apply of object %q: %s at %s can't be one: %s", NameOf(object.Unstructured), field,
				object.Place, faults[0])
		}
	}
	if _, err := schema.ParseGroupVersion(object.GetAPIVersion()); err != nil {
		return fmt.Errorf("error during apply of object %q: %w", NameOf(object.Unstructured), err)
	}
	return nil
}

func warnings(object *Desired) []string {
	var all []string
	if value, found := object.GetAnnotations()[resourcesv1alpha1.AnnotationFinalizeDeletionAfter]; found {
		if _, err := time.ParseDuration(value); err != nil {
			all = append(all, fmt.Sprintf("object %q: annotation %s is no duration; its deletion would hang", object.Name(),
				resourcesv1alpha1.AnnotationFinalizeDeletionAfter))
		}
	}
	if object.hadHold {
		all = append(all, fmt.Sprintf("object %q: annotation %s has no effect in a manifest, and is not written",
			object.Name(), resourcesv1alpha1.AnnotationLeaveAloneUntil))
	}
	return all
}

// complete returns the desired object of a decoded one: it sets the namespace and the labels, and normalizes the
// content (MRD-8, MRD-9, MRL-1, MRA-9).
func complete(object decode.Object, scope Scope, options Options) *Desired {
	desired := &Desired{
		Unstructured: object.Unstructured,
		Place:        object.Place,
		CreateOnly:   meta.Truthy(object.GetAnnotations(), resourcesv1alpha1.AnnotationIgnore),
	}
	switch {
	case scope == ScopeCluster:
		unstructured.RemoveNestedField(desired.Object, "metadata", "namespace")
	case desired.GetNamespace() == "" && (scope == ScopeNamespaced || desired.GetKind() != "Namespace"):
		desired.SetNamespace(corev1.NamespaceDefault)
	}
	desired.dropHold()

	labels := labelsToInject(options)
	reference := desired.GetLabels()
	if reference == nil {
		reference = map[string]string{}
	}
	maps.Copy(reference, labels)
	desired.Reference = resourcesv1alpha1.ObjectReference{
		ObjectReference: corev1.ObjectReference{
			APIVersion: desired.GetAPIVersion(), Kind: desired.GetKind(), Namespace: desired.GetNamespace(),
			Name: desired.GetName(),
		},
		Labels:      reference,
		Annotations: desired.GetAnnotations(),
	}
	desired.Ref = objects.RefOf(&desired.Reference)
	if desired.CreateOnly {
		injectInto(desired.Object, map[string]string{resourcesv1alpha1.LabelManagedBy: options.ManagedByLabelValue})
	} else {
		injectLabels(desired.Object, labels)
	}
	foldStringData(desired.Unstructured)
	kind, _ := typed.Of(desired.GroupVersionKind())
	kind.DropEmpty(desired.Object)
	return desired
}

// dropHold removes the annotations of a hold, which have an effect on live objects only (MRF-10).
func (d *Desired) dropHold() {
	annotations := d.GetAnnotations()
	for _, name := range hold.Annotations {
		if _, found := annotations[name]; found {
			d.hadHold = true
			unstructured.RemoveNestedField(d.Object, "metadata", "annotations", name)
		}
	}
}

type inventoryIndex struct {
	equivalences Equivalences
	entries      []resourcesv1alpha1.ObjectReference
	byKey        map[objects.ID]int
	taken        []bool
}

func newInventoryIndex(inventory []resourcesv1alpha1.ObjectReference, equivalences Equivalences) *inventoryIndex {
	index := &inventoryIndex{equivalences: equivalences, entries: inventory,
		byKey: make(map[objects.ID]int, len(inventory)), taken: make([]bool, len(inventory))}
	for i := range inventory {
		key := objects.IDOfEntry(&inventory[i])
		previous, twice := index.byKey[key]
		if twice && !CanExist(&inventory[i].ObjectReference) {
			index.taken[i] = true
			continue
		}
		if twice {
			index.taken[previous] = true // A second entry would cause the deletion of the object.
		}
		index.byKey[key] = i
	}
	return index
}

// take returns the entry of an object (MRD-13), preferably of the same kind, and marks all equivalent entries as
// matched: an interrupted run leaves the old kind next to the new one (MRD-16). A record of the object's creation is
// preferred to a tentative entry.
func (x *inventoryIndex) take(key objects.ID) *resourcesv1alpha1.ObjectReference {
	var same *resourcesv1alpha1.ObjectReference
	for _, key := range x.equivalences.Keys(key) {
		i, found := x.byKey[key]
		if !found {
			continue
		}
		x.taken[i] = true
		if entry := &x.entries[i]; same == nil || meta.Tentative(same) && !meta.Tentative(entry) &&
			meta.Truthy(entry.Annotations, resourcesv1alpha1.AnnotationIgnore) {
			same = entry
		}
	}
	return same
}

// recordInOtherScope returns the entry that records the creation of a cluster-scoped object under a namespace; nil if
// there is none. It does not mark the entry as matched, because the plan already has its object.
func (x *inventoryIndex) recordInOtherScope(key objects.ID) *resourcesv1alpha1.ObjectReference {
	for i := range x.entries {
		entry := &x.entries[i]
		if entry.UID != "" && !meta.Tentative(entry) && meta.Truthy(entry.Annotations, resourcesv1alpha1.AnnotationIgnore) &&
			objects.IDOfEntry(entry).Same(key, true) {
			return entry
		}
	}
	return nil
}

// takeAll returns all entries of an object, and marks them as matched: entries of its kind and of equivalent kinds
// and, for cluster-scoped kinds, with any namespace. Each unmatched entry would cause a deletion.
func (x *inventoryIndex) takeAll(key objects.ID, scope Scope) []resourcesv1alpha1.ObjectReference {
	var all []resourcesv1alpha1.ObjectReference
	keys := x.equivalences.Keys(key)
	for i := range x.entries {
		at := objects.IDOfEntry(&x.entries[i])
		if slices.ContainsFunc(keys, func(key objects.ID) bool { return key.Same(at, scope == ScopeCluster) }) {
			x.taken[i] = true
			all = append(all, x.entries[i])
		}
	}
	return all
}

func (x *inventoryIndex) rest() []resourcesv1alpha1.ObjectReference {
	var rest []resourcesv1alpha1.ObjectReference
	for i, taken := range x.taken {
		if !taken {
			rest = append(rest, x.entries[i])
		}
	}
	return rest
}

// NamedErrors limits the errors in a message to as many as a reader can act on. Messages of conditions are limited in
// bytes, too (meta.MaxMessage).
const NamedErrors = 20

// JoinNames joins at most `most` names with commas, and appends the number of the others.
func JoinNames(names []string, most int) string {
	return JoinFirst(names[:min(most, len(names))], len(names))
}

// JoinFirst joins the first names of a list with commas, and appends the number of the others. number is the length
// of the list.
func JoinFirst(names []string, number int) string {
	if number == len(names) {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), number-len(names))
}

// JoinErrors joins errors into one; a single error stays as it is (MRB-4).
func JoinErrors(errs []error) error {
	if len(errs) <= 1 {
		return errors.Join(errs...)
	}
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	return &joinedError{fmt.Sprintf("%d errors occurred: [%s]", len(errs), JoinNames(texts, NamedErrors)), errs}
}

// Combine joins errors in the form of MRX-12. They are sorted, so that the same errors result in the same message
// (MRB-18).
func Combine(prefix string, errs []error) string {
	if len(errs) == 1 {
		return fmt.Sprintf("%s: 1 error occurred: %s", prefix, errs[0])
	}
	return prefix + ": " + JoinErrors(errs).Error()
}

type joinedError struct {
	message string
	errs    []error
}

func (e *joinedError) Error() string   { return e.message }
func (e *joinedError) Unwrap() []error { return e.errs }
