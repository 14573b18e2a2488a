package tokenrequestor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor/token"
)

// account creates or updates the requested ServiceAccount, also when no token is due, and returns its UID (TR-13). It
// writes only differences.
func (r *Reconciler) account(ctx context.Context, asked *token.Asked) (types.UID, error) {
	labels, err := asked.Labels()
	if err != nil {
		return "", err
	}
	present := &corev1.ServiceAccount{}
	err = r.Target.Get(ctx, asked.Account, present)
	if apierrors.IsNotFound(err) {
		created := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: asked.Account.Namespace, Name: asked.Account.Name}}
		become(created, labels)
		if err := r.Target.Create(ctx, created); err != nil {
			return "", fmt.Errorf("creating ServiceAccount %s: %w", asked.Account, err)
		}
		return created.UID, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading ServiceAccount %s: %w", asked.Account, err)
	}
	changed := present.DeepCopy()
	become(changed, labels)
	if err := kit.Patch(ctx, r.Target, present, changed); err != nil {
		return "", fmt.Errorf("updating ServiceAccount %s: %w", asked.Account, err)
	}
	return present.UID, nil
}

// become sets the requested fields of a ServiceAccount. It removes all other labels.
func become(account *corev1.ServiceAccount, labels map[string]string) {
	account.AutomountServiceAccountToken = ptr.To(false)
	account.Labels = labels
}
