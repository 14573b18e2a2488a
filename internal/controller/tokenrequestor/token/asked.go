// Package token has the requests of Secrets to the token requestor, the time of a token's renewal, and the form of
// tokens in Secrets.
//
// The annotations of a Secret are its request (Asked). Its data has the token under the key token, or in a
// kubeconfig, whose other fields are not changed. No error repeats any of the data.
package token

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Labels and annotations of Secrets (section 2.1).
const (
	LabelPurpose   = "resources.gardener.cloud/purpose"
	PurposeRequest = "token-requestor"
	LabelClass     = "resources.gardener.cloud/class"

	prefix               = "serviceaccount.resources.gardener.cloud/"
	AnnotationName       = prefix + "name"
	AnnotationNamespace  = prefix + "namespace"
	AnnotationLabels     = prefix + "labels"
	AnnotationExpiration = prefix + "token-expiration-duration"
	// AnnotationRenew is written by the token requestor: the time of the renewal, RFC 3339 in UTC.
	AnnotationRenew    = prefix + "token-renew-timestamp"
	AnnotationInjectCA = prefix + "inject-ca-bundle"

	AnnotationTargetName      = "token-requestor.resources.gardener.cloud/target-secret-name"
	AnnotationTargetNamespace = "token-requestor.resources.gardener.cloud/target-secret-namespace"
)

// Audience of the tokens (TR-16).
const Audience = "gardener"

// DefaultExpiration is the requested lifetime if the Secret has none.
const DefaultExpiration = 12 * time.Hour

// Relevant reports whether an instance of a class handles a Secret with these labels; an empty class handles all
// classes (TR-2, SW-8).
func Relevant(labels map[string]string, class string) bool {
	return labels[LabelPurpose] == PurposeRequest && (class == "" || labels[LabelClass] == class)
}

// Asked is the request of a Secret.
type Asked struct {
	// Account is the ServiceAccount of the token.
	Account types.NamespacedName
	// InjectCA requests the CA of the target next to the token.
	InjectCA bool
	// Target is the Secret in the target for the token; nil means the requesting Secret.
	Target *types.NamespacedName
	// HalfTarget is set if only one of the two annotations for a target Secret exists; then there is no target Secret
	// (TR-8).
	HalfTarget bool

	annotations map[string]string
}

// Ask returns the request of a Secret. The error has the name of a missing annotation.
func Ask(annotations map[string]string) (*Asked, error) {
	a := &Asked{annotations: annotations, Account: types.NamespacedName{Namespace: annotations[AnnotationNamespace], Name: annotations[AnnotationName]}}
	for key, value := range map[string]string{AnnotationName: a.Account.Name, AnnotationNamespace: a.Account.Namespace} {
		if value == "" {
			return nil, fmt.Errorf("the Secret names no ServiceAccount: annotation %q is missing or empty", key)
		}
	}
	// A value that cannot be parsed is false (2.1).
	a.InjectCA, _ = strconv.ParseBool(annotations[AnnotationInjectCA])
	target := types.NamespacedName{Namespace: annotations[AnnotationTargetNamespace], Name: annotations[AnnotationTargetName]}
	switch {
	case target.Name != "" && target.Namespace != "":
		a.Target = &target
	case target.Name != "" || target.Namespace != "":
		a.HalfTarget = true
	}
	return a, nil
}

// Labels returns the labels that the ServiceAccount is to have (TR-13, TR-14).
func (a *Asked) Labels() (map[string]string, error) {
	value := a.annotations[AnnotationLabels]
	if value == "" {
		return nil, nil
	}
	var labels map[string]string
	if err := json.Unmarshal([]byte(value), &labels); err != nil {
		return nil, fmt.Errorf("failed unmarshalling service account labels from secret annotation %q (%s): %w", AnnotationLabels, value, err)
	}
	return labels, nil
}

// Seconds returns the lifetime to request, in whole seconds (TR-15).
func (a *Asked) Seconds() (int64, error) {
	value, found := a.annotations[AnnotationExpiration]
	if !found || value == "" {
		return int64(DefaultExpiration / time.Second), nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("annotation %q: %s", AnnotationExpiration, strings.TrimPrefix(err.Error(), "time: "))
	}
	return int64(d / time.Second), nil
}
