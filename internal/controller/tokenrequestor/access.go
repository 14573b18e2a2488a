package tokenrequestor

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor/token"
	"github.com/espalier-project/espalier/internal/feature"
)

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// Reads returns the reads of the token requestor. Of the source's Secrets it keeps only the metadata of those that
// request tokens.
func Reads(cfg *config.ResourceManagerConfiguration) []feature.Read {
	selector := labels.Set{token.LabelPurpose: token.PurposeRequest}
	if class := ptr.Deref(cfg.Controllers.TokenRequestor.Class, ""); class != "" {
		selector[token.LabelClass] = class
	}
	return []feature.Read{
		{
			Cluster: feature.Source, Kind: secretKind, Resource: "secrets", Form: feature.Metadata, Selector: selector.String(),
			Strip: feature.Stripping(func(secret *metav1.PartialObjectMetadata) { secret.Annotations, secret.OwnerReferences = nil, nil }),
		},
		{Cluster: feature.Source, Kind: secretKind, Resource: "secrets", Form: feature.Live},
		{Cluster: feature.Target, Kind: secretKind, Resource: "secrets", Form: feature.Live},
		{Cluster: feature.Target, Kind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Resource: "serviceaccounts", Form: feature.Live},
	}
}

// Writes are Secrets in both clusters, ServiceAccounts, tokens and TokenReviews. No Secret of the source is created
// or deleted (COM-10).
func Writes(cfg *config.ResourceManagerConfiguration) []feature.Write {
	all := []feature.Write{
		{Cluster: feature.Source, Resource: "secrets", Verbs: []string{"patch"}},
		{Cluster: feature.Source, Resource: "events", Verbs: []string{"create"}},
		{Cluster: feature.Target, Resource: "secrets", Verbs: []string{"create", "patch"}},
		{Cluster: feature.Target, Resource: "serviceaccounts", Verbs: []string{"create", "patch"}},
		{Cluster: feature.Target, Resource: "serviceaccounts/token", Verbs: []string{"create"}},
	}
	if ptr.Deref(cfg.Controllers.TokenRequestor.ReviewTokens, true) {
		all = append(all, feature.Write{Cluster: feature.Target, Group: authenticationv1.GroupName, Resource: "tokenreviews", Verbs: []string{"create"}})
	}
	return all
}
