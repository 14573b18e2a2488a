package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Annotations of Services, and labels of Pods and policies.
const (
	prefix = "networking.resources.gardener.cloud/"
	// toPrefix is the prefix of the label keys with which Pods request access.
	toPrefix = prefix + "to-"
	// Allowed is the value of such a label.
	Allowed = "allowed"

	AnnotationNamespaceSelectors = prefix + "namespace-selectors"
	AnnotationNamespaceAlias     = prefix + "pod-label-selector-namespace-alias"
	AnnotationFromWorld          = prefix + "from-world-to-ports"
	fromPrefix                   = prefix + "from-"
	fromSuffix                   = "-allowed-ports"

	LabelServiceName      = prefix + "service-name"
	LabelServiceNamespace = prefix + "service-namespace"
	AnnotationDescription = "gardener.cloud/description"
)

// keyLimit is the maximum length of the name part of a label key.
const keyLimit = 63

// ShortKey returns a label key in the form for Pods: a key that is too long ends with a digest (NP-21: 57 characters,
// a dash and 5 of the digest).
func ShortKey(key string) string {
	name, ours := strings.CutPrefix(key, prefix)
	if !ours || len(name) <= keyLimit {
		return key
	}
	digest := sha256.Sum256([]byte(name))
	return prefix + name[:57] + "-" + hex.EncodeToString(digest[:])[:5]
}

// IsPodLabel reports whether a label of a Pod requests access.
func IsPodLabel(key string) bool { return strings.HasPrefix(key, toPrefix) }

// The parts of names (NP-11 … NP-17).
const (
	ingressTo             = "ingress-to-"
	egressTo              = "egress-to-"
	via                   = "-via-"
	from                  = "-from-"
	fromWorld             = "-from-world"
	fromIngressController = "-from-ingress-controller"
	fromIstio             = "-from-istio"
)

// sources returns the namespaces that may be the ending of a policy's name in the Service's own namespace.
func sources(name string) []string {
	var all []string
	for {
		_, rest, found := strings.Cut(name, from)
		if !found || rest == "" {
			return all
		}
		all = append(all, rest)
		name = rest
	}
}
