package restriction

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	operationsv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/operations/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
)

type byOperation = map[admissionv1.Operation]func(*request, context.Context) error

// base has all resources that seeds create, or whose changes depend on the object (section 7.2). The checks of
// references are added to it (references.go).
var base = map[schema.GroupResource]byOperation{
	{Group: "core.gardener.cloud", Resource: "backupbuckets"}:              {admissionv1.Create: decoding((*request).createBackupBucket), admissionv1.Delete: (*request).deleteBackupBucket},
	{Group: "core.gardener.cloud", Resource: "backupentries"}:              {admissionv1.Create: decoding((*request).createBackupEntry), admissionv1.Update: (*request).updateBackupEntry},
	{Group: "operations.gardener.cloud", Resource: "bastions"}:             {admissionv1.Create: decoding((*request).createBastion)},
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: {admissionv1.Create: (*request).createCertificateSigningRequest},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}:  {admissionv1.Create: (*request).createClusterRoleBinding, admissionv1.Update: (*request).createClusterRoleBinding},
	{Resource: "configmaps"}: {admissionv1.Create: (*request).createConfigMap},
	{Group: "seedmanagement.gardener.cloud", Resource: "gardenlets"}: {admissionv1.Create: (*request).createGardenlet},
	{Group: "core.gardener.cloud", Resource: "internalsecrets"}:      {admissionv1.Create: (*request).createInternalSecret},
	{Group: "coordination.k8s.io", Resource: "leases"}:               {admissionv1.Create: (*request).createLease},
	{Resource: "secrets"}:                                   {admissionv1.Create: (*request).createSecret},
	{Group: "core.gardener.cloud", Resource: "seeds"}:       {admissionv1.Create: (*request).changeSeed, admissionv1.Update: (*request).changeSeed, admissionv1.Delete: (*request).deleteSeed},
	{Resource: "serviceaccounts"}:                           {admissionv1.Create: (*request).createServiceAccount},
	{Group: "core.gardener.cloud", Resource: "shootstates"}: {admissionv1.Create: (*request).createShootState},
}

// createBackupBucket implements RES-11.
func (q *request) createBackupBucket(_ context.Context, bucket *gardencorev1beta1.BackupBucket) error {
	return q.belongs(bucket.Spec.SeedName)
}

// deleteBackupBucket implements RES-12: the name of a seed's bucket is the UID of the seed.
func (q *request) deleteBackupBucket(ctx context.Context) error {
	seed, err := q.seed(ctx, q.client.Seed, absentIsError)
	if err != nil {
		return err
	}
	if q.Name == "" || string(seed.UID) != q.Name {
		return refuse(http.StatusForbidden, "cannot delete unrelated BackupBucket")
	}
	return nil
}

// createBackupEntry implements RES-13.
func (q *request) createBackupEntry(ctx context.Context, entry *gardencorev1beta1.BackupEntry) error {
	if err := q.belongs(entry.Spec.SeedName); err != nil {
		return err
	}
	if strings.HasPrefix(entry.Name, wellknown.SourceBackupEntryPrefix) {
		return q.createSourceBackupEntry(ctx, entry)
	}
	bucket, err := q.backupBucket(ctx, entry.Spec.BucketName, absentIsError)
	if err != nil {
		return err
	}
	return q.belongs(bucket.Spec.SeedName)
}

// updateBackupEntry implements RES-35: the garden's API lets any client change the name of the bucket
// (ValidateBackupEntrySpecUpdate), and an entry gives access to its bucket with all credentials (GE-5). The gardenlet
// that restores a Shoot changes it to the bucket of its own seed.
func (q *request) updateBackupEntry(ctx context.Context) error {
	entry, old, err := q.changedEntry()
	if err != nil || !opensBucket(entry, old) {
		return err
	}
	bucket, err := q.backupBucket(ctx, entry.Spec.BucketName, absentIsForbidden)
	if err != nil {
		return err
	}
	return q.belongs(bucket.Spec.SeedName)
}

// changedEntry returns the BackupEntry of an update, and its former state.
func (q *request) changedEntry() (entry, old *gardencorev1beta1.BackupEntry, err error) {
	entry, old = &gardencorev1beta1.BackupEntry{}, &gardencorev1beta1.BackupEntry{}
	if err := q.decode(entry); err != nil {
		return nil, nil, err
	}
	if err := admission.Unmarshal(q.OldObject.Raw, old); err != nil {
		return nil, nil, refuse(http.StatusInternalServerError, "the current object cannot be read: %s", err)
	}
	return entry, old, nil
}

// opensBucket reports whether a BackupEntry names another bucket than before, or gives another self-hosted shoot
// access to its bucket (SHG-1).
func opensBucket(entry, old *gardencorev1beta1.BackupEntry) bool {
	return entry.Spec.BucketName != old.Spec.BucketName || entry.Spec.ShootRef != nil && !reflect.DeepEqual(entry.Spec.ShootRef, old.Spec.ShootRef)
}

// createSourceBackupEntry implements RES-14: the copy of an entry while its Shoot moves.
func (q *request) createSourceBackupEntry(ctx context.Context, entry *gardencorev1beta1.BackupEntry) error {
	owner := ""
	for _, reference := range entry.OwnerReferences {
		if reference.Kind == "Shoot" {
			owner = reference.Name
			break
		}
	}
	shoot, err := q.shoot(ctx, q.Namespace, owner, absentIsError)
	if err != nil {
		return err
	}
	if last := shoot.Status.LastOperation; last == nil || last.Type != "Restore" || last.State != "Processing" {
		return refuse(http.StatusForbidden, "creation of source BackupEntry is only allowed during shoot Restore operation (shoot: %s)", owner)
	}
	name := strings.TrimPrefix(entry.Name, wellknown.SourceBackupEntryPrefix+"-")
	var original []byte
	err = q.reading(ctx, func(ctx context.Context) (err error) {
		original, err = q.Reader.GetRaw(ctx, gardencorev1beta1.Resource("backupentries"), q.Namespace, name)
		return err
	})
	switch {
	case reflector.IsAbsent(err):
		return refuse(http.StatusForbidden, "could not find original BackupEntry %s: %s", name, err)
	case err != nil:
		return q.unread(err)
	}
	same, err := sameSpec(q.Object.Raw, original)
	if err != nil {
		return refuse(http.StatusInternalServerError, "%s", err)
	}
	if !same {
		return refuse(http.StatusForbidden, "specification of source BackupEntry must equal specification of original BackupEntry %s", name)
	}
	return nil
}

// sameSpec compares all fields of two specifications, also those that the partial types do not have.
func sameSpec(a, b []byte) (bool, error) {
	var left, right struct {
		Spec map[string]any `json:"spec"`
	}
	err := errors.Join(admission.Unmarshal(a, &left), admission.Unmarshal(b, &right))
	return reflect.DeepEqual(left.Spec, right.Spec), err
}

// createBastion implements RES-15.
func (q *request) createBastion(_ context.Context, bastion *operationsv1alpha1.Bastion) error {
	return q.belongs(bastion.Spec.SeedName)
}

// createCertificateSigningRequest implements RES-16.
func (q *request) createCertificateSigningRequest(context.Context) error {
	if err := q.notForExtensions("CertificateSigningRequests"); err != nil {
		return err
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := q.decode(csr); err != nil {
		return err
	}
	seed, err := identity.SeedOfCertificateRequest(csr.Spec.Request, csr.Spec.Usages)
	switch {
	case errors.Is(err, identity.ErrNotClient):
		return refuse(http.StatusForbidden, "can only create CSRs for seed clusters: %s", err)
	case err != nil:
		return refuse(http.StatusBadRequest, "%s", err)
	}
	return q.belongs(&seed)
}

// createClusterRoleBinding implements RES-17; an update is checked like a creation (RES-36).
func (q *request) createClusterRoleBinding(ctx context.Context) error {
	if err := q.notForExtensions("ClusterRoleBindings"); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := q.decode(binding); err != nil {
		return err
	}
	namespace, name, ok := wellknown.ParseBootstrapper(q.Name)
	if !ok {
		return q.foreign()
	}
	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: wellknown.BootstrapperRole}); binding.RoleRef != want {
		return refuse(http.StatusForbidden, "can only bindings referring to the bootstrapper role")
	}
	if want := (rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: wellknown.BootstrapServiceAccount + name}); !slices.Equal(binding.Subjects, []rbacv1.Subject{want}) {
		return refuse(http.StatusForbidden, "can only bind ServiceAccount %s/%s%s", namespace, wellknown.BootstrapServiceAccount, name)
	}
	return q.managedSeedBootstraps(ctx, namespace, name)
}

// createConfigMap implements RES-18.
func (q *request) createConfigMap(ctx context.Context) error {
	return q.createOfShoot(ctx, wellknown.ShootConfigMaps)
}

// createInternalSecret implements RES-20.
func (q *request) createInternalSecret(ctx context.Context) error {
	return q.createOfShoot(ctx, wellknown.ShootInternalSecrets)
}

func (q *request) createOfShoot(ctx context.Context, suffixes []string) error {
	shoot, ok := wellknown.CutShootSuffix(q.Name, suffixes)
	if !ok {
		return q.foreign()
	}
	return q.shootBelongs(ctx, shoot)
}

// createGardenlet implements RES-19.
func (q *request) createGardenlet(context.Context) error {
	if q.Namespace != wellknown.Garden {
		return refuse(http.StatusBadRequest, "object must be in namespace: %q", wellknown.Garden)
	}
	return q.belongs(&q.Name)
}

// createLease implements RES-21.
func (q *request) createLease(context.Context) error {
	if q.client.Type == identity.Extension {
		if q.Namespace != wellknown.SeedNamespace(q.client.Seed) {
			return refuse(http.StatusForbidden, "extension client can only create leases in the namespace for seed %q", q.client.Seed)
		}
		return nil
	}
	switch {
	case q.Name == wellknown.GardenletLeaderElection:
		return nil
	case q.Namespace == wellknown.SeedLease:
		return q.belongs(&q.Name)
	}
	return q.foreign()
}

// changeSeed implements RES-23.
func (q *request) changeSeed(context.Context) error {
	name := q.Name
	if name == "" {
		seed := &gardencorev1beta1.Seed{}
		if err := q.decode(seed); err != nil {
			return err
		}
		name = seed.Name
	}
	return q.belongs(&name)
}

// deleteSeed implements RES-24: a seed may also be deleted from the seed that hosts its cluster, when its ManagedSeed
// is being deleted.
func (q *request) deleteSeed(ctx context.Context) error {
	if q.belongs(&q.Name) == nil {
		return nil
	}
	if q.Name == "" {
		return q.foreign()
	}
	m, err := q.managedSeed(ctx, wellknown.Garden, q.Name)
	if err != nil {
		if why, is := err.(*admission.Refusal); is && why.Code == http.StatusForbidden { //nolint:errorlint // Refusals are never wrapped.
			return q.foreign()
		}
		return err
	}
	if m.DeletionTimestamp == nil {
		return refuse(http.StatusForbidden, "object can only be deleted if corresponding ManagedSeed has a deletion timestamp")
	}
	return q.managedSeedBelongs(ctx, m)
}

// createServiceAccount implements RES-25.
func (q *request) createServiceAccount(ctx context.Context) error {
	if err := q.notForExtensions("ServiceAccounts"); err != nil {
		return err
	}
	if name, found := strings.CutPrefix(q.Name, wellknown.BootstrapServiceAccount); found {
		return q.managedSeedBootstraps(ctx, q.Namespace, name)
	}
	if q.Namespace == wellknown.SeedNamespace(q.client.Seed) {
		return nil
	}
	return q.foreign()
}

// createShootState implements RES-28.
func (q *request) createShootState(ctx context.Context) error {
	state := &struct {
		Metadata partialmeta.Object `json:"metadata"`
	}{}
	if err := q.decode(state); err != nil {
		return err
	}
	name := q.Name
	if name == "" {
		name = state.Metadata.Name
	}
	shoot, err := q.shoot(ctx, q.Namespace, name, absentIsError)
	if err != nil {
		return err
	}
	return q.belongs(shoot.Spec.SeedName, shoot.Status.SeedName)
}
