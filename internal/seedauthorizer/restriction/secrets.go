package restriction

import (
	"context"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
)

var shootSecrets = append(slices.Clone(wellknown.ShootSecrets), wellknown.ShootKubeconfig)

// createSecret implements section 7.3; the first case that matches decides.
func (q *request) createSecret(ctx context.Context) error {
	if err := q.isForNoServiceAccount(); err != nil {
		return err
	}
	if bucket, found := strings.CutPrefix(q.Name, wellknown.GeneratedBucketPrefix); found {
		return q.createBucketSecret(ctx, bucket)
	}
	if shoot, found := wellknown.CutShootSuffix(q.Name, shootSecrets); found {
		return q.shootBelongs(ctx, shoot) // A Secret that is named after a Shoot belongs to that Shoot (RES-30).
	}
	switch {
	case q.Namespace == wellknown.ShootIssuer:
		return q.createIssuerSecret(ctx)
	case q.Namespace == wellknown.KubeSystem && strings.HasPrefix(q.Name, wellknown.BootstrapTokenPrefix):
		return q.createBootstrapToken(ctx)
	}
	return q.isBackupSecret(ctx)
}

// isForNoServiceAccount implements RES-34: into a Secret of this type, kube-controller-manager writes a token of the
// ServiceAccount that an annotation names, which may be any in the namespace. The client could then read the token,
// because it may read the Secret. The type never changes.
func (q *request) isForNoServiceAccount() error {
	secret := &struct {
		Type corev1.SecretType `json:"type"`
	}{}
	if err := q.decode(secret); err != nil {
		return err
	}
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		return refuse(http.StatusForbidden, "clients of seeds and shoots may not create Secrets of type %q", secret.Type)
	}
	return nil
}

// createBucketSecret implements RES-29. Generated Secrets are in one namespace only.
func (q *request) createBucketSecret(ctx context.Context, name string) error {
	bucket, err := q.backupBucket(ctx, name, absentIsForbidden)
	if err != nil {
		return err
	}
	if q.Namespace != wellknown.Garden {
		return q.foreign()
	}
	return q.belongs(bucket.Spec.SeedName)
}

// createIssuerSecret implements RES-31.
func (q *request) createIssuerSecret(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := q.decode(secret); err != nil {
		return err
	}
	discovery := wellknown.Discovery
	if _, found := secret.Labels[discovery]; !found {
		if _, found := secret.Labels[wellknown.DiscoveryBefore]; found {
			discovery = wellknown.DiscoveryBefore // Older releases wrote another key (D-10).
		}
	}
	for _, key := range []string{wellknown.ShootName, wellknown.ShootNamespace, discovery} {
		if _, found := secret.Labels[key]; !found {
			return refuse(http.StatusUnprocessableEntity, "label %q is missing", key)
		}
	}
	if secret.Labels[discovery] != "serviceaccount" {
		return refuse(http.StatusUnprocessableEntity, "label %q value must be set to \"serviceaccount\"", wellknown.Discovery)
	}
	shoot, err := q.shoot(ctx, secret.Labels[wellknown.ShootNamespace], secret.Labels[wellknown.ShootName], absentIsForbidden)
	if err != nil {
		return err
	}
	if err := q.belongs(shoot.Spec.SeedName); err != nil {
		return err
	}
	project, err := q.projectOf(ctx, shoot.Namespace)
	if err != nil {
		return err
	}
	// The name is <project>--<uid of the Shoot>: one seed must not publish keys under the name of another one's Shoot or project.
	if project == "" || shoot.UID == "" || q.Name != project+"--"+string(shoot.UID) {
		return q.foreign()
	}
	return nil
}

// createBootstrapToken implements RES-32. With a token that it chose, an extension would become a gardenlet.
func (q *request) createBootstrapToken(ctx context.Context) error {
	if err := q.notForExtensions("bootstrap tokens"); err != nil {
		return err
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
		return q.managedSeedBootstraps(ctx, namespace, name)
	case "Gardenlet":
		return q.gardenletBootstraps(ctx, namespace, name)
	default:
		// The description is content of a Secret, and must not be in the response.
		return refuse(http.StatusBadRequest, "unknown kind %q found in bootstrap token secret description", kind)
	}
}

// checkBootstrapToken requires that a token has exactly the rights that a bootstrap needs.
func checkBootstrapToken(secret *corev1.Secret) error {
	if secret.Type != corev1.SecretTypeBootstrapToken {
		return refuse(http.StatusUnprocessableEntity, "unexpected secret type: %q", secret.Type)
	}
	for _, key := range []string{"usage-bootstrap-authentication", "usage-bootstrap-signing"} {
		if string(secret.Data[key]) != "true" {
			return refuse(http.StatusUnprocessableEntity, "%q must be set to 'true'", key)
		}
	}
	if _, found := secret.Data["auth-extra-groups"]; found {
		return refuse(http.StatusUnprocessableEntity, "%q must not be set", "auth-extra-groups")
	}
	return nil
}
