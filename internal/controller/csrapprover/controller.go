// Package csrapprover approves and denies the CertificateSigningRequests of kubelets and node agents. Package csr
// makes the decisions; this package writes each decision once.
package csrapprover

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/csrapprover/csr"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// Name is the name of the controller in logs and metrics.
const Name = "csr-approver"

// maxUser bounds the logged part of the requester's name, in bytes: the requester's certificate may have any name.
const maxUser = 256

// Options are the dependencies of the approver; all are required.
type Options struct {
	Config config.CSRApproverControllerConfig
	// Requests reads CertificateSigningRequests of the target. It may be a cache, because a write has the version
	// that was read as its precondition.
	Requests client.Reader
	// Approvals writes to the approval subresource of CertificateSigningRequests.
	Approvals client.SubResourceWriter
	// Target and Source read Nodes of the target and Machines of the source, without a cache.
	Target, Source client.Reader
	Metrics        *Metrics
}

// Reconciler approves or denies CertificateSigningRequests.
type Reconciler struct {
	Options
	rules csr.Rules
	view  csr.View
}

// New returns a reconciler.
func New(o Options) *Reconciler {
	namespace := ptr.Deref(o.Config.MachineNamespace, "")
	return &Reconciler{Options: o, view: &liveView{nodes: o.Target, machines: o.Source, namespace: namespace}, rules: csr.Rules{
		Machines: o.Config.MachineNamespace != nil, MachineNamespace: namespace,
		StrictBootstrap:    ptr.Deref(o.Config.StrictBootstrap, false),
		BootstrapByKubelet: ptr.Deref(o.Config.BootstrapByKubelet, false),
		ServiceAccount:     ptr.Deref(o.Config.NodeAgentServiceAccount, true),
	}}
}

// Reconcile decides about one request and writes the decision, unless another approver already did.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &certificatesv1.CertificateSigningRequest{}
	if err := r.Requests.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, kit.Retrieving(err)
	}
	if !csr.Concerned(object.Spec.SignerName) || csr.Final(object) {
		return reconcile.Result{}, nil
	}
	asked, err := csr.Parse(object)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision, err := csr.Decide(ctx, r.rules, asked, r.view)
	if err != nil || decision.Outcome == csr.Ignored {
		return reconcile.Result{}, err
	}
	answered := object.DeepCopy()
	answered.Status.Conditions = append(answered.Status.Conditions, decision.Condition())
	if err := r.Approvals.Update(ctx, answered); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the approval: %w", err)
	}
	log.FromContext(ctx).Info("Decided about a certificate signing request", "signer", asked.Signer, "user", meta.Shortened(asked.Username, maxUser), "outcome", decision.Outcome, "reason", decision.Reason)
	r.Metrics.decided(asked.Signer, decision.Outcome)
	return reconcile.Result{}, nil
}

// AddToManager adds the controller. The cache provides its events.
func (r *Reconciler) AddToManager(mgr manager.Manager, requests cache.Cache, cacheSyncTimeout time.Duration) error {
	return kit.Add(mgr, Name, kit.Options(r, *r.Config.ConcurrentSyncs, cacheSyncTimeout), ctrlsource.Kind[client.Object](requests, &certificatesv1.CertificateSigningRequest{}, &handler.EnqueueRequestForObject{}, concerned()))
}

// concerned passes requests that are created or changed, if this approver handles their signer and they are not
// decided yet (CSR-1, CSR-2).
func concerned() predicate.Predicate {
	pending := predicate.NewPredicateFuncs(func(object client.Object) bool {
		request, ok := object.(*certificatesv1.CertificateSigningRequest)
		return ok && csr.Concerned(request.Spec.SignerName) && !csr.Final(request)
	})
	return predicate.Funcs{CreateFunc: pending.Create, UpdateFunc: pending.Update, DeleteFunc: kit.NoDelete, GenericFunc: kit.NoGeneric}
}
