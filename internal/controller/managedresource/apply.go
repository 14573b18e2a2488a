package managedresource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/apply"
	"github.com/espalier-project/espalier/internal/ledger"
	"github.com/espalier-project/espalier/internal/managed"
	"github.com/espalier-project/espalier/internal/target"
)

const (
	// perRun limits the requests of one run at a time, all those of all runs. Twice what two cores of an API server work off
	// in parallel keeps it busy; more only lengthens its queue.
	perRun  = 16
	allRuns = 32
	// updateAttempts limits how often a conflicting write is answered by merging anew.
	updateAttempts = 4
	// servedWithin is how long a custom resource waits for its CRD of the same ManagedResource (MR-31).
	servedWithin = 5 * time.Second
)

// applier carries out one plan.
type applier struct {
	*Reconciler
	mr   *resourcesv1alpha1.ManagedResource
	plan *apply.Plan
	full bool

	equivalences apply.Equivalences
	definedKinds map[metav1.GroupKind]bool

	mu               sync.Mutex
	errs             []error
	failedNamespaces map[string]bool
	failedKinds      map[metav1.GroupKind]bool
}

// apply creates and updates the objects of the plan, kind after kind, those of a kind side by side (MR-22). Every object is
// tried but those that need a Namespace or a CRD that failed (MRB-4).
func (r *Reconciler) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, plan *apply.Plan, full bool) error {
	a := &applier{
		Reconciler: r, mr: mr, plan: plan, full: full, errs: slices.Clone(plan.Errors),
		equivalences:     apply.NewEquivalences(mr.Spec.Equivalences),
		definedKinds:     map[metav1.GroupKind]bool{},
		failedNamespaces: map[string]bool{}, failedKinds: map[metav1.GroupKind]bool{},
	}
	if slices.ContainsFunc(plan.Apply, func(d *apply.Desired) bool { return scalable(d.Key) }) {
		if err := r.Watches.Autoscalers().Ready(ctx); err != nil {
			return err
		}
	}
	for _, tier := range apply.Tiers(plan.Apply, func(d *apply.Desired) string { return d.GetKind() }) {
		a.applyTier(ctx, tier)
	}
	return apply.JoinErrors(a.errs)
}

// scalable says whether the merge of a kind asks for autoscalers.
func scalable(key apply.Key) bool {
	return (key.Group == "apps" || key.Group == "extensions") && (key.Kind == "Deployment" || key.Kind == "StatefulSet")
}

func (a *applier) applyTier(ctx context.Context, tier []*apply.Desired) {
	var work []func()
	for _, desired := range tier {
		options := a.options(desired)
		digest := desiredDigest(desired, options)
		if !a.full && a.Ledger.IsVerified(keyOf(desired), digest) && a.Watches.Covered(target.RefOf(&desired.Reference)) {
			objects.WithLabelValues(desired.GetKind(), "skipped").Inc()
			continue
		}
		if a.dependsOnFailed(desired) {
			continue
		}
		work = append(work, func() { a.applyOne(ctx, desired, options, digest) })
	}
	a.parallel(len(work), func(i int) { work[i]() })
}

func (a *applier) options(desired *apply.Desired) apply.MergeOptions {
	return apply.MergeOptions{
		ForceOverwriteLabels:      isTrue(a.mr.Spec.ForceOverwriteLabels),
		ForceOverwriteAnnotations: isTrue(a.mr.Spec.ForceOverwriteAnnotations),
		Origin:                    a.origin(a.mr),
		HorizontallyScaled:        scalable(desired.Key) && a.Watches.Autoscalers().Scales(a.equivalences.Keys(desired.Key)),
	}
}

// desiredDigest stands for all that decides what an object is to be.
func desiredDigest(desired *apply.Desired, options apply.MergeOptions) uint64 {
	digest := ledger.ContentDigest(desired.Object) ^ ledger.ContentDigest(map[string]any{"origin": options.Origin})<<4
	for i, flag := range []bool{options.ForceOverwriteLabels, options.ForceOverwriteAnnotations, options.HorizontallyScaled} {
		if flag {
			digest ^= 2 << i
		}
	}
	return digest
}

func keyOf(desired *apply.Desired) ledger.Key { return target.RefOf(&desired.Reference).Key }

func isTrue(b *bool) bool { return b != nil && *b }

// dependsOnFailed says whether an object can only fail because of another one that did.
func (a *applier) dependsOnFailed(desired *apply.Desired) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failedNamespaces[desired.GetNamespace()] || a.failedKinds[desired.Key.GroupKind()]
}

func (a *applier) applyOne(ctx context.Context, desired *apply.Desired, options apply.MergeOptions, digest uint64) {
	result, sighting, err := a.write(ctx, desired, options)
	if err != nil {
		a.failed(ctx, desired, err)
		return
	}
	a.succeeded(desired)
	objects.WithLabelValues(desired.GetKind(), result).Inc()
	sighting.Key, sighting.Desired = keyOf(desired), digest
	finding := a.Ledger.Lookup(sighting.Key)
	if finding.Suspect && result != "unchanged" {
		drift.WithLabelValues(desired.GetKind()).Inc()
		log.FromContext(ctx).Info("Put right what somebody else changed", "resource", desired.Name(), "result", result)
	}
	a.Ledger.Verified(ownerOf(a.mr), sighting)
	a.Watches.Served(target.RefOf(&desired.Reference))
}

func (a *applier) succeeded(desired *apply.Desired) {
	if desired.Key.Kind == "CustomResourceDefinition" && desired.Key.Group == "apiextensions.k8s.io" {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.definedKinds[definedKind(desired)] = true
	}
}

func definedKind(crd *apply.Desired) metav1.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return metav1.GroupKind{Group: group, Kind: kind}
}

// failed keeps an error in the form of MR-28; a conflict is passed on as it is.
func (a *applier) failed(ctx context.Context, desired *apply.Desired, err error) {
	objects.WithLabelValues(desired.GetKind(), "failed").Inc()
	var complete *completeError
	if !apierrors.IsConflict(err) && !errors.As(err, &complete) {
		err = fmt.Errorf("error during apply of object %q: %w", desired.Name(), err)
	}
	log.FromContext(ctx).V(1).Info("Object could not be applied", "resource", desired.Name(), "reason", err.Error())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, err)
	switch desired.Key.Kind {
	case "Namespace":
		a.failedNamespaces[desired.GetName()] = true
	case "CustomResourceDefinition":
		a.failedKinds[definedKind(desired)] = true
	}
}

// completeError already says which object it is about.
type completeError struct{ error }

func (e *completeError) Unwrap() error { return e.error }

// write makes one object be as it should and returns what was done and the object as it is then (MR-25, MR-26). An object
// that has never been there, or is known to be gone, is created without a look; any other is read first.
func (a *applier) write(ctx context.Context, desired *apply.Desired, options apply.MergeOptions) (string, ledger.Sighting, error) {
	var none ledger.Sighting
	finding := a.Ledger.Lookup(keyOf(desired))
	expectAbsent := desired.Old == nil || finding.Known && !finding.Present
	for attempt := 0; ; attempt++ {
		var createErr error
		if expectAbsent {
			var created ledger.Sighting
			if created, createErr = a.create(ctx, desired, options); createErr == nil {
				return "created", created, nil
			}
			if meta.IsNoMatchError(createErr) {
				return "", none, createErr
			}
		}
		// Whatever a refused creation says, the object may be there: node ports and quotas are checked before names.
		live, err := a.get(ctx, desired)
		if apierrors.IsNotFound(err) && attempt < updateAttempts && (createErr == nil || apierrors.IsAlreadyExists(createErr)) {
			expectAbsent = true
			continue
		}
		if err != nil {
			return "", none, cmp.Or(createErr, err)
		}
		expectAbsent = false
		a.noteTakeover(ctx, desired, live)
		merged := apply.Merge(desired, live, options)
		if apply.Equal(live, merged) && !*a.Config.AlwaysUpdate {
			return "unchanged", a.Watches.View().Sighting(live), nil
		}
		updated, err := a.Target.Update(ctx, merged, a.Watches.View())
		switch {
		case err == nil && updated.ResourceVersion == live.GetResourceVersion():
			return "unchanged", updated, nil
		case err == nil:
			return "updated", updated, nil
		case (apierrors.IsConflict(err) || apierrors.IsNotFound(err)) && attempt < updateAttempts:
			continue // Somebody else was faster: merge into what is there now.
		case apierrors.IsInvalid(err):
			return "", none, a.replace(ctx, desired, merged, err)
		}
		return "", none, err
	}
}

// noteTakeover tells of an object that another ManagedResource has, too, or had until now (MRB-16).
func (a *applier) noteTakeover(ctx context.Context, desired *apply.Desired, live *unstructured.Unstructured) {
	value, found := live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	if !found || desired.CreateOnly {
		return
	}
	if origin, err := managed.ParseOrigin(value); err == nil && origin.Key != ownerOf(a.mr) {
		takeovers.Inc()
		log.FromContext(ctx).Info("Taking over an object of another ManagedResource", "resource", desired.Name(), "origin", value)
	}
}

func (a *applier) get(ctx context.Context, desired *apply.Desired) (*unstructured.Unstructured, error) {
	return a.Target.Get(ctx, desired.GroupVersionKind(), desired.GetNamespace(), desired.GetName())
}

// create creates an object; a kind whose CRD has just been applied is waited for (MR-31).
func (a *applier) create(ctx context.Context, desired *apply.Desired, options apply.MergeOptions) (ledger.Sighting, error) {
	object := apply.ForCreation(desired, options)
	created, err := a.Target.Create(ctx, object, a.Watches.View())
	if !a.notServedYet(desired, err) {
		return created, err
	}
	waitErr := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, servedWithin, false, func(ctx context.Context) (bool, error) {
		created, err = a.Target.Create(ctx, object, a.Watches.View())
		return !a.notServedYet(desired, err), nil
	})
	if waitErr != nil && err == nil {
		err = waitErr
	}
	return created, err
}

func (a *applier) notServedYet(desired *apply.Desired, err error) bool {
	missingKind := meta.IsNoMatchError(err) || apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "namespaces")
	if !missingKind {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.definedKinds[desired.Key.GroupKind()]
}

// replace answers an update that was refused as invalid: where the object asks for it, or is an immutable ConfigMap or
// Secret, it is deleted, and the next run creates it (MR-33, MR-34).
func (a *applier) replace(ctx context.Context, desired *apply.Desired, merged *unstructured.Unstructured, cause error) error {
	annotations := merged.GetAnnotations()
	if !managed.Truthy(annotations, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate) && !isImmutable(merged, cause) {
		return cause
	}
	var policy metav1.DeletionPropagation
	if value, found := annotations[resourcesv1alpha1.AnnotationDeletionPropagationOnInvalidUpdate]; found {
		policy = metav1.DeletionPropagation(value)
		supported := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
		if !slices.Contains(supported, policy) {
			return &completeError{fmt.Errorf("invalid deletion propagation policy on object %s: %q is invalid, supported values: %v", desired.Name(), value, supported)}
		}
	}
	if err := a.Target.Delete(ctx, merged, policy); err != nil && !apierrors.IsNotFound(err) {
		return &completeError{fmt.Errorf("error deleting object %q after 'invalid' update error: %w", desired.Name(), err)}
	}
	return &completeError{fmt.Errorf("deleted object %q because of 'invalid' update error, and 'delete-on-invalid-update' annotation on object or the resource is an immutable ConfigMap/Secret: %w", desired.Name(), cause)}
}

func isImmutable(object *unstructured.Unstructured, err error) bool {
	if object.GetAPIVersion() != "v1" || (object.GetKind() != "ConfigMap" && object.GetKind() != "Secret") {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeForbidden && strings.Contains(cause.Message, "field is immutable when `immutable` is set")
	})
}
