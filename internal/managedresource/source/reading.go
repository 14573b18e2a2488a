package source

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Reading has the Secrets of one ManagedResource, read one after the other for one run.
//
// Invariant: once Together has returned true, there was a moment since the reading began at which each of the Secrets
// was as it was read, as long as resource versions go forward.
type Reading struct {
	secrets *Secrets
	read    []readSecret
}

type readSecret struct {
	key     types.NamespacedName
	data    map[string][]byte
	version string
}

// Reading returns a reading without Secrets.
func (s *Secrets) Reading() *Reading { return &Reading{secrets: s} }

// Get is Get of Secrets; a second call for a Secret returns the same answer.
func (r *Reading) Get(ctx context.Context, key types.NamespacedName) (data map[string][]byte, version string,
	err error) {
	for _, secret := range r.read {
		if secret.key == key {
			return secret.data, secret.version, nil
		}
	}
	if data, version, err = r.secrets.Get(ctx, key); err == nil {
		r.read = append(r.read, readSecret{key, data, version})
	}
	return data, version, err
}

// Together reports whether there was a moment at which all Secrets were as they were read. It reads all but the last
// one again.
func (r *Reading) Together(ctx context.Context) (bool, error) { return r.unchanged(ctx, len(r.read)-1) }

// Unchanged reports whether the Secrets still are as they were read.
func (r *Reading) Unchanged(ctx context.Context) (bool, error) { return r.unchanged(ctx, len(r.read)) }

func (r *Reading) unchanged(ctx context.Context, number int) (bool, error) {
	for i := range number {
		_, version, err := r.secrets.Get(ctx, r.read[i].key)
		switch {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reading the Secrets again: %w", err)
		case version != r.read[i].version:
			return false, nil
		}
	}
	return true, nil
}
