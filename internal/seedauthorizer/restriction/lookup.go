package restriction

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/wellknown"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/internal/reflector"
	access "github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// absence is the code for related objects that do not exist.
type absence int

const (
	absentIsFine      absence = 0 // The object is nil.
	absentIsForbidden absence = http.StatusForbidden
	absentIsError     absence = http.StatusInternalServerError
)

// read reads a related object; the error's text is the API server's, which names the object.
func read[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, q *request, resource schema.GroupVersionResource, namespace, name string, absent absence) (P, error) {
	object := P(new(T))
	err := q.reading(ctx, func(ctx context.Context) error { return q.Reader.Get(ctx, resource, namespace, name, object) })
	switch {
	case err == nil:
		return object, nil
	case reflector.IsAbsent(err) && absent == absentIsFine: // Not if the whole resource is missing: then it is unknown.
		return nil, nil
	case reflector.IsAbsent(err):
		return nil, refuse(int(absent), "%s", err)
	}
	return nil, q.unread(err)
}

// unread is the refusal for a read that failed or was not made.
func (q *request) unread(err error) error {
	switch {
	case errors.Is(err, access.ErrUnknownSink):
		return refuse(http.StatusForbidden, "%s", err)
	case errors.Is(err, ratelimit.ErrRefused):
		return refuse(http.StatusTooManyRequests, "too many objects are to be judged for %s, please try again later", relation.Schema.String(q.of))
	}
	return refuse(http.StatusInternalServerError, "%s", err)
}

func (q *request) shoot(ctx context.Context, namespace, name string, absent absence) (*gardencorev1beta1.Shoot, error) {
	return read[gardencorev1beta1.Shoot](ctx, q, gardencorev1beta1.Resource("shoots"), namespace, name, absent)
}

func (q *request) backupBucket(ctx context.Context, name string, absent absence) (*gardencorev1beta1.BackupBucket, error) {
	return read[gardencorev1beta1.BackupBucket](ctx, q, gardencorev1beta1.Resource("backupbuckets"), "", name, absent)
}

func (q *request) seed(ctx context.Context, name string, absent absence) (*gardencorev1beta1.Seed, error) {
	return read[gardencorev1beta1.Seed](ctx, q, gardencorev1beta1.Resource("seeds"), "", name, absent)
}

func (q *request) managedSeed(ctx context.Context, namespace, name string) (*seedmanagementv1alpha1.ManagedSeed, error) {
	return read[seedmanagementv1alpha1.ManagedSeed](ctx, q, seedmanagementv1alpha1.Resource("managedseeds"), namespace, name, absentIsForbidden)
}

// shootBelongs requires that a Shoot of the request's namespace is on the client's seed.
func (q *request) shootBelongs(ctx context.Context, name string) error {
	shoot, err := q.shoot(ctx, q.Namespace, name, absentIsForbidden)
	if err != nil {
		return err
	}
	return q.belongs(shoot.Spec.SeedName)
}

// managedSeedBelongs requires that the Shoot of a ManagedSeed is on the client's seed.
func (q *request) managedSeedBelongs(ctx context.Context, m *seedmanagementv1alpha1.ManagedSeed) error {
	if m.Spec.Shoot == nil {
		return q.foreign()
	}
	shoot, err := q.shoot(ctx, m.Namespace, m.Spec.Shoot.Name, absentIsError)
	if err != nil {
		return err
	}
	return q.belongs(shoot.Spec.SeedName)
}

// managedSeedBootstraps requires a ManagedSeed whose gardenlet still has to be bootstrapped (RES-26).
func (q *request) managedSeedBootstraps(ctx context.Context, namespace, name string) error {
	m, err := q.managedSeed(ctx, namespace, name)
	if err != nil {
		return err
	}
	if err := q.managedSeedBelongs(ctx, m); err != nil {
		return err
	}
	seed, err := q.seed(ctx, name, absentIsFine)
	switch {
	case err != nil:
		return err
	case seed == nil || expired(seed, q.Clock.Now()) || renews(&m.Object):
		return nil
	}
	return refuse(http.StatusBadRequest, "managed seed %s/%s is already bootstrapped", namespace, name)
}

// gardenletBootstraps requires the client's own Gardenlet, which still has to be bootstrapped (RES-27).
func (q *request) gardenletBootstraps(ctx context.Context, namespace, name string) error {
	if name != q.client.Seed || namespace != wellknown.Garden {
		return refuse(http.StatusForbidden, "gardenlet %s/%s does not belong to seed %q", namespace, name, q.client.Seed)
	}
	g, err := read[seedmanagementv1alpha1.Gardenlet](ctx, q, seedmanagementv1alpha1.Resource("gardenlets"), namespace, name, absentIsForbidden)
	if err != nil {
		return err
	}
	seed, err := q.seed(ctx, name, absentIsForbidden)
	if err != nil {
		return err
	}
	if expired(seed, q.Clock.Now()) || renews(&g.Object) {
		return nil
	}
	return refuse(http.StatusBadRequest, "gardenlet %s/%s is already bootstrapped", namespace, name)
}

func expired(seed *gardencorev1beta1.Seed, now time.Time) bool {
	expires := seed.Status.ClientCertificateExpirationTimestamp
	return expires != nil && expires.Before(&metav1.Time{Time: now})
}

func renews(object *partialmeta.Object) bool {
	return object.Annotations[wellknown.Operation] == wellknown.RenewKubeconfig
}

// projectOf returns the project in the label of a namespace.
func (q *request) projectOf(ctx context.Context, namespace string) (string, error) {
	object, err := read[corev1.Namespace](ctx, q, corev1.SchemeGroupVersion.WithResource("namespaces"), "", namespace, absentIsForbidden)
	if err != nil {
		return "", err
	}
	return object.Labels[wellknown.Project], nil
}

// isBackupSecret reports whether a Secret has the backup credentials of a ManagedSeed that the client's seed hosts
// (RES-33). The graph has the ManagedSeeds that name it (GE-26) and their Shoots (GE-24), so that this costs two
// reads at most, however many ManagedSeeds there are.
func (q *request) isBackupSecret(ctx context.Context) error {
	answer := q.foreign()
	for _, host := range q.hostsOfBackup() {
		shoot, err := q.shoot(ctx, host.Namespace, host.Name, absentIsForbidden)
		if err == nil {
			err = q.belongs(shoot.Spec.SeedName)
		}
		if err == nil {
			return nil
		}
		if why, is := answer.(*admission.Refusal); is && why.Code == http.StatusForbidden { //nolint:errorlint // Refusals are never wrapped.
			answer = err // A failed read is no refusal, whatever follows it.
		}
	}
	return answer
}

// hostsRead limits the Shoots that are read for one Secret. A Shoot that moves away still leads to the seed, but does
// not belong to it any more; so one more Shoot is read.
const hostsRead = 2

// hostsOfBackup returns Shoots of ManagedSeeds whose backups name the Secret: those that lead to the client's seed, or else any one.
func (q *request) hostsOfBackup() []graph.Vertex {
	var own, others []graph.Vertex
	for _, edge := range q.Graph.EdgesFrom(graph.Vertex{Kind: relation.Secret, Namespace: q.Namespace, Name: q.Name}) {
		if edge.To.Kind != relation.ManagedSeed {
			continue
		}
		for _, next := range q.Graph.EdgesFrom(edge.To) {
			if next.To.Kind != relation.Shoot || slices.Contains(own, next.To) {
				continue
			}
			if !q.Graph.Check(next.To, relation.SeedVertex(q.client.Seed)).Reached {
				if others == nil {
					others = []graph.Vertex{next.To}
				}
				continue
			}
			if own = append(own, next.To); len(own) == hostsRead {
				return own
			}
		}
	}
	if own == nil {
		return others
	}
	return own
}
