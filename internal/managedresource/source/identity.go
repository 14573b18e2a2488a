package source

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
)

// ClusterIdentity is the name of the ConfigMap with the identity of the cluster, and of its key.
const ClusterIdentity = "cluster-identity"

// IdentityError is the error of a source cluster that answered but has no usable identity, so that a retry does not
// help.
type IdentityError struct{ err error }

func (e *IdentityError) Error() string { return e.err.Error() }
func (e *IdentityError) Unwrap() error { return e.err }

// ClusterID returns the identity that a configured value stands for (MRC-6, MRC-7). It bypasses caches, so that their
// restriction to namespaces does not matter (MRB-25).
func ClusterID(ctx context.Context, client corev1client.ConfigMapsGetter, configured string) (string, error) {
	if configured != config.ClusterIDFromCluster && configured != config.ClusterIDDefault {
		return configured, nil
	}
	optional := configured == config.ClusterIDDefault
	wrap := func(err error) error {
		return fmt.Errorf("unable to determine cluster id: cannot determine cluster identity from configmap: %w", err)
	}
	fail := func(err error) (string, error) { return "", &IdentityError{wrap(err)} }
	configMap, err := client.ConfigMaps(metav1.NamespaceSystem).Get(ctx, ClusterIdentity, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && optional:
		return "", nil
	case apierrors.IsNotFound(err):
		return fail(err)
	case err != nil:
		return "", wrap(err)
	}
	id, found := configMap.Data[ClusterIdentity]
	switch {
	case !found && optional:
		return "", nil
	case !found:
		return fail(errors.New("no cluster-identity entry"))
	case strings.ContainsAny(id, ":/"):
		return fail(fmt.Errorf("entry %s contains ':' or '/': origin annotations could not be parsed", ClusterIdentity))
	}
	return id, nil
}
