package node

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// token is one of the Pod's ServiceAccount.
type token struct {
	text  string
	renew time.Time
}

// issue returns a token, a new one when half the life of the last is over.
func (p *pod) issue(ctx context.Context, wanted *corev1.ServiceAccountTokenProjection) (string, error) {
	if p.token.text != "" && time.Now().Before(p.token.renew) {
		return p.token.text, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: wanted.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.object.Name, UID: p.object.UID},
	}}
	if wanted.Audience != "" {
		request.Spec.Audiences = []string{wanted.Audience}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.object.Namespace, Name: p.object.Spec.ServiceAccountName}}
	if err := p.node.client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	p.token = token{text: request.Status.Token, renew: time.Now().Add(time.Until(request.Status.ExpirationTimestamp.Time) / 2)}
	return p.token.text, nil
}
