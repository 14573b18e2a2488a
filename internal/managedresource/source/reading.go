package source

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Reading reads Secrets that one ManagedResource names. Secrets that it reads one after the other may never have
// existed together, and a Secret that a watch reported may be of a time before the ManagedResource named it.
//
// Invariant: once Confirm has returned true, there was a moment, not before the resource version that the reading
// began with, at which each of the Secrets was as it was read, as long as resource versions go forward.
type Reading struct {
	secrets *Secrets
	since   string
	read    map[types.NamespacedName]latestSecret
}

// Reading begins to read for the form that a ManagedResource has at a resource version.
func (s *Secrets) Reading(since string) *Reading {
	return &Reading{s, since, map[types.NamespacedName]latestSecret{}}
}

// Get is Get of Secrets; a second call for a Secret returns the same answer.
func (r *Reading) Get(ctx context.Context, key types.NamespacedName) (data map[string][]byte, of string, err error) {
	secret, found := r.read[key]
	if !found {
		if secret, err = r.secrets.read(ctx, key, r.moment()); err != nil {
			return nil, "", err
		}
		r.read[key] = secret
	}
	return secret.data, secret.version, nil
}

// moment returns the first known resource version at which all Secrets may have been as they were read.
func (r *Reading) moment() string {
	moment := r.since
	for _, secret := range r.read {
		moment = latest(moment, secret.resourceVersion)
	}
	return moment
}

// Confirm reports whether there was a moment at which all Secrets were as they were read. It reads the Secrets of
// which that is not known from the API server; the watch reports their changes to subscribers sooner or later.
func (r *Reading) Confirm(ctx context.Context) (bool, error) {
	moment := r.moment()
	for key, secret := range r.read {
		if moment == "" || notOlder(secret.asOf, moment) {
			continue
		}
		now, err := r.secrets.read(ctx, key, moment)
		if apierrors.IsNotFound(err) || err == nil && now.version != secret.version {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
