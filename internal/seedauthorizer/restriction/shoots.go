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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/identity"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// SelfHosted is ShootRestriction, which does for self-hosted shoots what SeedRestriction does for seeds (section
// 8.3).
type SelfHosted struct{ *Handler }

type shootRequest struct {
	*request
	client identity.ShootClient
	// seed is the same request in the name of the seed that the shoot also is (SH-23). It is nil for gardenlets and
	// for shoots that are no seeds.
	seed *request
}

// ofShoot returns a request of a client of a self-hosted shoot.
func (h SelfHosted) ofShoot(r *admissionv1.AdmissionRequest, client identity.ShootClient) *shootRequest {
	shoot := graph.Vertex{Kind: relation.Shoot, Namespace: client.Namespace, Name: client.Name}
	own := reach{in: h.Shoots, to: shoot}
	q := &shootRequest{client: client, request: &request{
		Handler: h.Handler, AdmissionRequest: r, of: shoot, called: "shoot " + client.Namespace + "/" + client.Name, reach: []reach{own},
	}}
	q.backup = q.backupOfShoot
	// The ShootAuthorizer lets extensions do what extensions of the seed may do, under the same condition (SH-23).
	if client.Type == identity.Extension && client.Namespace == wellknown.Garden && h.Shoots.Check(relation.SeedVertex(client.Name), shoot).Reached {
		q.seed = h.ofSeed(r, identity.SeedClient{Seed: client.Name, Type: identity.Extension})
		q.seed.of = q.of
		// The shoot may write every object that it reaches, because it has no writeScope. So objects that the seed
		// may only read do not count.
		q.reach = append(q.reach, reach{in: h.Graph, to: relation.SeedVertex(client.Name), managed: true})
		q.seed.reach = append(q.seed.reach, own)
	}
	return q
}

// backupOfShoot returns the backup credentials of the client's Shoot.
func (q *shootRequest) backupOfShoot(ctx context.Context) ([]graph.Vertex, error) {
	shoot, err := q.shoot(ctx, q.client.Namespace, q.client.Name, absentIsFine)
	if err != nil || shoot == nil {
		return nil, err
	}
	own := relation.ControlPlaneBackups(shoot)
	return slices.DeleteFunc(own, func(v graph.Vertex) bool { return v.Namespace != q.client.Namespace }), nil
}

// namesOnly is the rule for updates that checks the names in the object.
func namesOnly(kind graph.Kind) func(*shootRequest, context.Context) error {
	return func(q *shootRequest, ctx context.Context) error {
		return q.namesOnlyReachable(ctx, relation.WatchOf(kind))
	}
}

// byPathOr leaves deletions of objects that lead to the shoot to the authorizer. Deletions by an extension for the
// seed are decided like those of the seed.
func byPathOr(kind graph.Kind, ofSeed func(*request, context.Context) error) func(*shootRequest, context.Context) error {
	return func(q *shootRequest, ctx context.Context) error {
		own := q.reach[0]
		if q.seed == nil || own.in.Check(graph.Vertex{Kind: kind, Namespace: q.Namespace, Name: q.Name}, own.to).Reached {
			return nil
		}
		return ofSeed(q.seed, ctx)
	}
}

type shootOperations = map[admissionv1.Operation]func(*shootRequest, context.Context) error

// shootRules has all resources that gardenlets and extensions of self-hosted shoots create, or whose changes depend on
// the object.
var shootRules = map[schema.GroupResource]shootOperations{
	{Group: "core.gardener.cloud", Resource: "backupbuckets"}: {
		admissionv1.Create: decoding((*shootRequest).createBackupBucket), admissionv1.Update: namesOnly(relation.BackupBucket), admissionv1.Delete: byPathOr(relation.BackupBucket, (*request).deleteBackupBucket),
	},
	{Group: "core.gardener.cloud", Resource: "backupentries"}:              {admissionv1.Create: decoding((*shootRequest).createBackupEntry), admissionv1.Update: (*shootRequest).updateBackupEntry},
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: {admissionv1.Create: (*shootRequest).createCertificateSigningRequest},
	{Resource: "configmaps"}: {admissionv1.Create: (*shootRequest).createConfigMap},
	{Group: "core.gardener.cloud", Resource: "controllerinstallations"}: {admissionv1.Update: namesOnly(relation.ControllerInstallation)},
	{Group: "seedmanagement.gardener.cloud", Resource: "gardenlets"}:    {admissionv1.Create: (*shootRequest).createPrefixed, admissionv1.Update: namesOnly(relation.Gardenlet)},
	{Group: "core.gardener.cloud", Resource: "internalsecrets"}:         {admissionv1.Create: (*shootRequest).createInternalSecret},
	{Group: "coordination.k8s.io", Resource: "leases"}:                  {admissionv1.Create: (*shootRequest).createLease},
	{Group: "seedmanagement.gardener.cloud", Resource: "managedseeds"}:  {admissionv1.Update: (*shootRequest).updateManagedSeed},
	{Resource: "secrets"}:                                   {admissionv1.Create: (*shootRequest).createSecret},
	{Group: "core.gardener.cloud", Resource: "seeds"}:       {admissionv1.Delete: byPathOr(relation.Seed, (*request).deleteSeed)},
	{Resource: "serviceaccounts"}:                           {admissionv1.Create: (*shootRequest).createServiceAccount, admissionv1.Update: namesOnly(relation.ServiceAccount)},
	{Group: "core.gardener.cloud", Resource: "shoots"}:      {admissionv1.Update: namesOnly(relation.Shoot)},
	{Group: "core.gardener.cloud", Resource: "shootstates"}: {admissionv1.Create: (*shootRequest).createShootState},
}

// gardenadmRules are the operations of gardenadm, the tool that sets a self-hosted shoot up; no other client of such a shoot needs them.
var gardenadmRules = map[schema.GroupResource]shootOperations{
	{Resource: "configmaps"}: {admissionv1.Create: (*shootRequest).createInNamespace},
	{Group: "security.gardener.cloud", Resource: "credentialsbindings"}: {admissionv1.Create: (*shootRequest).createBinding},
	{Group: "core.gardener.cloud", Resource: "projects"}:                {admissionv1.Create: decoding((*shootRequest).createProject)},
	{Group: "core.gardener.cloud", Resource: "secretbindings"}:          {admissionv1.Create: (*shootRequest).createBinding},
	{Resource: "secrets"}:                                              {admissionv1.Create: (*shootRequest).createSecretInNamespace},
	{Group: "core.gardener.cloud", Resource: "shoots"}:                 {admissionv1.Create: (*shootRequest).createItself, admissionv1.Update: namesOnly(relation.Shoot)},
	{Group: "security.gardener.cloud", Resource: "workloadidentities"}: {admissionv1.Create: (*shootRequest).createInNamespace},
}

// Decide admits the requests that the rules admit, and all requests of other users.
func (h SelfHosted) Decide(ctx context.Context, r *admissionv1.AdmissionRequest) error {
	client, ok := identity.OfShoot(r.UserInfo.Username, r.UserInfo.Groups)
	if !ok {
		return nil
	}
	q := h.ofShoot(r, client)
	if client.Type == identity.Gardenadm {
		return dispatch(ctx, q, r, gardenadmRules)
	}
	resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
	if q.seed != nil && shootRules[resource][r.Operation] == nil {
		return dispatch(ctx, q.seed, r, q.seed.rules())
	}
	return dispatch(ctx, q, r, shootRules)
}

func (q *shootRequest) foreign() error {
	return refuse(http.StatusForbidden, "object does not belong to shoot %s/%s", q.client.Namespace, q.client.Name)
}

// belongs requires that a namespace and a name are those of the client's shoot.
func (q *shootRequest) belongs(namespace, name string) error {
	if namespace == q.client.Namespace && name == q.client.Name {
		return nil
	}
	return q.foreign()
}

func (q *shootRequest) belongsByReference(reference *partialmeta.Reference) error {
	if reference == nil {
		return q.foreign()
	}
	return q.belongs(reference.Namespace, reference.Name)
}

func (q *shootRequest) createBackupBucket(ctx context.Context, bucket *gardencorev1beta1.BackupBucket) error {
	if err := q.belongsByReference(bucket.Spec.ShootRef); err != nil {
		return err
	}
	return q.namesOnlyReachable(ctx, relation.WatchOf(relation.BackupBucket))
}

// updateBackupEntry implements RES-35 for self-hosted shoots. Such an entry never moves to a seed, whose graph would
// follow the bucket further.
func (q *shootRequest) updateBackupEntry(ctx context.Context) error {
	entry, old, err := q.changedEntry()
	moves := err == nil && entry.Spec.SeedName != nil && !reflect.DeepEqual(entry.Spec.SeedName, old.Spec.SeedName)
	if err != nil || !opensBucket(entry, old) && !moves {
		return err
	}
	bucket, err := q.backupBucket(ctx, entry.Spec.BucketName, absentIsForbidden)
	if err != nil {
		return err
	}
	return q.belongsByReference(bucket.Spec.ShootRef)
}

func (q *shootRequest) createBackupEntry(ctx context.Context, entry *gardencorev1beta1.BackupEntry) error {
	if err := q.belongsByReference(entry.Spec.ShootRef); err != nil {
		return err
	}
	bucket, err := q.backupBucket(ctx, entry.Spec.BucketName, absentIsForbidden)
	if err != nil {
		return err
	}
	return q.belongsByReference(bucket.Spec.ShootRef)
}

func (q *shootRequest) createCertificateSigningRequest(context.Context) error {
	if q.client.Type != identity.Gardenlet {
		return refuse(http.StatusForbidden, "only gardenlet clients may create CertificateSigningRequests")
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := q.decode(csr); err != nil {
		return err
	}
	namespace, name, err := identity.ShootOfCertificateRequest(csr.Spec.Request, csr.Spec.Usages)
	switch {
	case errors.Is(err, identity.ErrNotClient):
		return refuse(http.StatusForbidden, "can only create CSRs for shoot clusters: %s", err)
	case err != nil:
		return refuse(http.StatusBadRequest, "%s", err)
	}
	return q.belongs(namespace, name)
}

func (q *shootRequest) createConfigMap(context.Context) error {
	return q.shootNameBelongs(wellknown.ShootConfigMaps)
}

func (q *shootRequest) createInternalSecret(context.Context) error {
	return q.shootNameBelongs(wellknown.ShootInternalSecrets)
}

func (q *shootRequest) shootNameBelongs(suffixes []string) error {
	shoot, _ := wellknown.CutShootSuffix(q.Name, suffixes)
	return q.belongs(q.Namespace, shoot)
}

// createPrefixed admits objects with the name of the shoot after a prefix.
func (q *shootRequest) createPrefixed(context.Context) error {
	shoot, found := strings.CutPrefix(q.Name, wellknown.SelfHostedShootPrefix)
	if !found {
		return refuse(http.StatusBadRequest, "the resource for self-hosted shoots must be prefixed with %q", wellknown.SelfHostedShootPrefix)
	}
	return q.belongs(q.Namespace, shoot)
}

func (q *shootRequest) createLease(ctx context.Context) error {
	if q.client.Type != identity.Extension {
		return q.createPrefixed(ctx)
	}
	switch {
	case q.Namespace != q.client.Namespace:
		return refuse(http.StatusForbidden, "extension client can only create leases in the namespace for shoot %q", q.client.Namespace+"/"+q.client.Name)
	case !strings.HasPrefix(q.Name, q.client.Name+"--"):
		return refuse(http.StatusForbidden, "extension client can only create leases with the shoot name %q as prefix", q.client.Name)
	}
	return nil
}

func (q *shootRequest) updateManagedSeed(ctx context.Context) error {
	if q.seed == nil { // The path decides about updates by an extension of the seed.
		if err := q.ofManagedSeed(ctx, q.Namespace, q.Name); err != nil {
			return err
		}
	}
	return q.namesOnlyReachable(ctx, relation.WatchOf(relation.ManagedSeed))
}

func (q *shootRequest) ofManagedSeed(ctx context.Context, namespace, name string) error {
	m, err := q.managedSeed(ctx, namespace, name)
	if err != nil {
		return err
	}
	if m.Spec.Shoot == nil {
		return q.foreign()
	}
	return q.belongs(m.Namespace, m.Spec.Shoot.Name)
}

func (q *shootRequest) createSecret(ctx context.Context) error {
	if err := q.isForNoServiceAccount(); err != nil {
		return err
	}
	if shoot, found := wellknown.CutShootSuffix(q.Name, wellknown.ShootSecrets); found {
		return q.belongs(q.Namespace, shoot)
	}
	if name, found := strings.CutPrefix(q.Name, wellknown.GeneratedBucketPrefix); found {
		bucket, err := q.backupBucket(ctx, name, absentIsForbidden)
		if err != nil {
			return err
		}
		if q.Namespace != wellknown.Garden { // As RES-29: generated Secrets are in one namespace only.
			return q.foreign()
		}
		if bucket.Spec.ShootRef == nil {
			return refuse(http.StatusForbidden, ".spec.shootRef must be set in the BackupBucket resource %q belonging to this Secret", name)
		}
		return q.belongsByReference(bucket.Spec.ShootRef)
	}
	if q.Namespace == wellknown.KubeSystem && strings.HasPrefix(q.Name, wellknown.BootstrapTokenPrefix) {
		return q.createBootstrapToken(ctx)
	}
	return q.foreign()
}

// createBootstrapToken admits only tokens of gardenlets: with a token that it chose, an extension would become one.
func (q *shootRequest) createBootstrapToken(ctx context.Context) error {
	if q.client.Type == identity.Extension {
		return refuse(http.StatusForbidden, "extension client may not create bootstrap tokens")
	}
	secret := &corev1.Secret{}
	if err := q.decode(secret); err != nil {
		return err
	}
	if err := checkBootstrapToken(secret); err != nil {
		return err
	}
	switch kind, namespace, name := wellknown.ParseBootstrapDescription(string(secret.Data["description"])); kind {
	case "ManagedSeed":
		return q.ofManagedSeed(ctx, namespace, name)
	case "Gardenlet":
		// The Gardenlet of a seed may have the name of a Shoot; its token does not belong to a Shoot.
		if shoot, found := strings.CutPrefix(name, wellknown.SelfHostedShootPrefix); found {
			return q.belongs(namespace, shoot)
		}
	}
	return q.foreign()
}

func (q *shootRequest) createServiceAccount(context.Context) error {
	if q.client.Type == identity.Extension {
		return refuse(http.StatusForbidden, "extension client may not create ServiceAccounts")
	}
	if q.Namespace == q.client.Namespace && strings.HasPrefix(q.Name, wellknown.ExtensionOfShootPrefix+q.client.Name+"--") {
		return nil
	}
	return q.foreign()
}

func (q *shootRequest) createShootState(context.Context) error { return q.belongs(q.Namespace, q.Name) }

func (q *shootRequest) createItself(context.Context) error { return q.belongs(q.Namespace, q.Name) }

func (q *shootRequest) createInNamespace(context.Context) error {
	return q.belongs(q.Namespace, q.client.Name)
}

func (q *shootRequest) createSecretInNamespace(ctx context.Context) error {
	if err := q.isForNoServiceAccount(); err != nil {
		return err
	}
	return q.createInNamespace(ctx)
}

// createBinding requires that a SecretBinding or CredentialsBinding, and the credentials that it names, are in the
// shoot's namespace. The garden's API lets gardenadm name any credentials there without a right to read them
// (ensureBindingReferences of the reference).
func (q *shootRequest) createBinding(ctx context.Context) error {
	if err := q.createInNamespace(ctx); err != nil {
		return err
	}
	binding := &struct {
		CredentialsRef *partialmeta.Reference       `json:"credentialsRef"`
		SecretRef      *partialmeta.SecretReference `json:"secretRef"`
	}{}
	if err := q.decode(binding); err != nil {
		return err
	}
	if ref := binding.CredentialsRef; ref != nil && ref.Namespace != q.client.Namespace {
		return q.foreign()
	}
	if ref := binding.SecretRef; ref != nil && ref.Namespace != q.client.Namespace {
		return q.foreign()
	}
	return nil
}

// createProject requires that the project has the shoot's namespace.
func (q *shootRequest) createProject(_ context.Context, project *gardencorev1beta1.Project) error {
	if namespace := project.Spec.Namespace; namespace == nil || *namespace != q.client.Namespace {
		return q.foreign()
	}
	return nil
}
