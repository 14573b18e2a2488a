package source

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Reading has the Secrets of one ManagedResource, read one after the other for one run.
//
// Invariant: once Together has returned true, all Secrets existed, as they were read, at one moment since the reading
// began, as long as resource versions only increase.
type Reading struct {
	secrets *Secrets
	read    []readSecret
}

type readSecret struct {
	key     types.NamespacedName
	data    map[string][]byte
	version string
}

// Reading returns a Reading that has read no Secret yet.
func (s *Secrets) Reading() *Reading { return &Reading{secrets: s} }

// Get is Secrets.Get; a second call for the same Secret returns the first answer.
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

// Together reports whether all Secrets existed at one moment as they were read. It reads all but the last one again.
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
