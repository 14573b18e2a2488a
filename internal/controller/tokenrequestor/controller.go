// Package tokenrequestor writes tokens of the target's ServiceAccounts into Secrets that request them. Package token
// has the requests, and the form of tokens in Secrets. No log, error, Event or metric has a token.
package tokenrequestor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor/token"
)

// Name is the name of the controller in logs and metrics.
const Name = "token-requestor"

// Options are the dependencies of the token requestor; all are required.
type Options struct {
	Config config.TokenRequestorControllerConfig
	// Source and Target read and write the clusters without a cache: a token must be issued for the present objects.
	Source, Target client.Client
	// CA returns the present CA bundle of the target's API server; empty if none is known (TR-23b).
	CA      func() ([]byte, error)
	Notes   *kit.Notes
	Metrics *Metrics
	Clock   clock.PassiveClock
}

// Reconciler issues and renews the tokens of Secrets.
type Reconciler struct {
	Options
	rejections       rejections
	replacementLimit replacementLimit
}

// New returns a reconciler.
func New(o Options) *Reconciler {
	return &Reconciler{
		Options:          o,
		rejections:       rejections{clock: o.Clock, issued: map[types.NamespacedName]issue{}},
		replacementLimit: replacementLimit{clock: o.Clock, buckets: map[types.NamespacedName]*rate.Limiter{}},
	}
}

// Reconcile reconciles one Secret.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	err := r.Source.Get(ctx, request.NamespacedName, secret)
	gone := apierrors.IsNotFound(err)
	if err != nil && !gone {
		return reconcile.Result{}, kit.Retrieving(err)
	}
	// A Secret that is being deleted still gets tokens while it has a finalizer: its users read it until it is gone.
	if gone || !token.Relevant(secret.Labels, ptr.Deref(r.Config.Class, "")) {
		r.forget(request.NamespacedName, secret.UID)
		return reconcile.Result{}, nil // The target's Secret and ServiceAccount stay (TR-4, TR-25).
	}
	var odd oddity
	after, err := r.serve(ctx, secret, &odd)
	if err != nil {
		if !apierrors.IsConflict(err) {
			r.Notes.RecordReason(ctx, reference(secret), corev1.EventTypeWarning, "TokenRequestFailed", err.Error())
		}
		return reconcile.Result{}, err
	}
	if odd.reason == "" {
		r.Notes.Forget(secret.UID)
	} else {
		r.Notes.RecordReason(ctx, reference(secret), corev1.EventTypeWarning, odd.reason, odd.message)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// oddity is a problem of a Secret that gets its token nevertheless. Only one oddity of a Secret is reported at a
// time: two lasting ones would be reported alternately, without end.
type oddity struct{ reason, message string }

// serve issues or keeps the token of a Secret, and returns the time until its renewal.
func (r *Reconciler) serve(ctx context.Context, secret *corev1.Secret, odd *oddity) (time.Duration, error) {
	asked, err := token.Ask(secret.Annotations)
	if err != nil {
		return 0, err
	}
	if asked.HalfTarget {
		*odd = oddity{"IncompleteTarget", "Only one of the two annotations for a target Secret is set; the token is kept in this Secret."}
	}
	account, err := r.account(ctx, asked)
	if err != nil {
		return 0, err
	}
	destination, err := r.destination(ctx, asked, secret)
	if err != nil {
		return 0, err
	}
	var ca []byte
	if asked.InjectCA {
		if ca, err = r.CA(); err != nil {
			return 0, fmt.Errorf("reading the CA of the target: %w", err)
		}
	}
	reason, after, err := r.due(ctx, asked, secret, destination, account, ca, odd)
	if err != nil || reason == "" {
		return after, err
	}
	why := cause{reason, asked.Early(r.Clock.Now())}
	if pause := r.pause(secret, asked, why); pause > 0 {
		*odd = oddity{"TokenDoesNotStay", "The token is replaced less often from now on, because it did not stay as it was written."}
		log.FromContext(ctx).V(1).Info("A token is replaced later", "serviceAccount", asked.Account.String(), "reason", reason, "after", pause.String())
		return pause, nil
	}
	return r.renew(ctx, asked, secret, destination, ca, why)
}

// cause is the reason of a renewal. early marks a renewal before its time without a request.
type cause struct {
	reason string
	early  bool
}

// pause returns the delay of an early replacement, which is at most the time until the regular renewal.
func (r *Reconciler) pause(secret *corev1.Secret, asked *token.Asked, why cause) time.Duration {
	if !why.early {
		return 0
	}
	pause := r.replacementLimit.pause(client.ObjectKeyFromObject(secret))
	if remaining, err := asked.Remaining(r.Clock.Now()); err == nil {
		pause = min(pause, remaining)
	}
	return pause
}

// holder is the Secret with the token: the requesting Secret, or one in the target, which may not exist yet.
type holder struct {
	*corev1.Secret
	inTarget, exists bool
}

func (r *Reconciler) destination(ctx context.Context, asked *token.Asked, secret *corev1.Secret) (holder, error) {
	if asked.Target == nil {
		return holder{Secret: secret, exists: true}, nil
	}
	h := holder{Secret: &corev1.Secret{}, inTarget: true}
	err := r.Target.Get(ctx, *asked.Target, h.Secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return h, fmt.Errorf("could not read target secret: %w", err)
	}
	if err == nil && h.UID == secret.UID && h.Namespace == secret.Namespace && h.Name == secret.Name {
		// Source and target are the same Secret. Handled as two, each write would conflict with the other and cost a
		// token.
		return holder{Secret: secret, exists: true}, nil
	}
	h.Namespace, h.Name, h.exists = asked.Target.Namespace, asked.Target.Name, err == nil
	return h, nil
}

// reasonDue is the reason of a regular renewal.
const reasonDue = "it is time to renew the token"

// due returns the reason for a new token, or the time until the present one is renewed (2.3).
func (r *Reconciler) due(ctx context.Context, asked *token.Asked, secret *corev1.Secret, destination holder, account types.UID, ca []byte, odd *oddity) (string, time.Duration, error) {
	now := r.Clock.Now()
	examined, err := asked.Examine(destination.Data, ca, account, now)
	if err != nil {
		return "", 0, inSecret(destination.Secret, err)
	}
	if examined.Renew != "" {
		return examined.Renew, 0, nil
	}
	if destination.inTarget {
		leftover, err := token.Leftover(secret.Data)
		if err != nil {
			return "", 0, inSecret(secret, fmt.Errorf("could not check whether token exists in secret data: %w", err))
		}
		if leftover {
			return "the source still holds a token that is to be in the target", 0, nil
		}
	}
	key := client.ObjectKeyFromObject(secret)
	if ptr.Deref(r.Config.ReviewTokens, true) {
		accepted, err := r.accepted(ctx, examined.Token)
		if err != nil {
			return "", 0, fmt.Errorf("token review failed: %w", err)
		}
		if !accepted {
			if pause := r.rejections.pause(key, examined.Token); pause > 0 {
				*odd = oddity{"TokenRejected", "The target does not accept the token that it has issued."}
				return "", pause, nil
			}
			return "the target does not accept the token", 0, nil
		}
		r.rejections.accepted(key)
	}
	remaining, err := asked.Remaining(now)
	if err != nil {
		return "", 0, err
	}
	if remaining <= 0 {
		return reasonDue, 0, nil
	}
	r.Metrics.expires(key, token.ClaimsOf(examined.Token).Expiry)
	return "", remaining, nil
}

// accepted reports whether the target accepts a token for its audience (TR-11, TR-24).
func (r *Reconciler) accepted(ctx context.Context, content string) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: content, Audiences: []string{token.Audience}}}
	err := r.Target.Create(ctx, review)
	return err == nil && review.Status.Authenticated, err
}

// renew issues a token and writes it (2.4).
func (r *Reconciler) renew(ctx context.Context, asked *token.Asked, secret *corev1.Secret, destination holder, ca []byte, why cause) (time.Duration, error) {
	seconds, err := asked.Seconds()
	if err != nil {
		return 0, err
	}
	// Before a token is issued, this finds out whether the Secret can be written.
	if _, err := written(secret, destination, "x", asked.InjectCA, ca); err != nil {
		return 0, err
	}
	issued := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{token.Audience}, ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = asked.Account.Namespace, asked.Account.Name
	if err := r.Target.SubResource("token").Create(ctx, account, issued); err != nil {
		return 0, fmt.Errorf("requesting a token for ServiceAccount %s: %w", asked.Account, err)
	}
	key := client.ObjectKeyFromObject(secret)
	now, expiry := r.Clock.Now(), issued.Status.ExpirationTimestamp.Time
	delay := token.Delay(expiry.Sub(now), rand.Float64())
	data, err := written(secret, destination, issued.Status.Token, asked.InjectCA, ca)
	if err != nil {
		return 0, err
	}
	outdated, err := r.write(ctx, secret, destination, data, token.Stamp(now.Add(delay)))
	// The limit counts issued tokens, including those that could not be written.
	if why.early && !outdated {
		r.replacementLimit.replaced(key)
	}
	if err != nil {
		return 0, fmt.Errorf("could not update Secret with token: %w", err)
	}
	r.rejections.issue(key, issued.Status.Token)
	r.Metrics.renewed(key, expiry)
	logger := log.FromContext(ctx)
	if why.reason == reasonDue {
		logger = logger.V(1) // Each token is due some times a day, and a seed has many.
	}
	logger.Info("Renewed a token", "serviceAccount", asked.Account.String(), "reason", why.reason, "expires", expiry, "renewAfter", delay.String())
	return delay, nil
}

// contents are the data of both Secrets; target is nil if the token is in the source.
type contents struct{ source, target map[string][]byte }

func written(secret *corev1.Secret, destination holder, content string, wantCA bool, ca []byte) (contents, error) {
	var c contents
	var err error
	if !destination.inTarget {
		c.source, err = token.Write(secret.Data, content, wantCA, ca)
		return c, inSecret(secret, err)
	}
	if c.source, err = token.Without(secret.Data); err != nil {
		return c, inSecret(secret, err)
	}
	c.target, err = token.Handed(secret.Data, destination.Data, content, wantCA, ca)
	return c, inSecret(destination.Secret, err)
}

// inSecret adds the name of the Secret whose data cannot be read or written.
func inSecret(secret *corev1.Secret, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("Secret %s: %w", client.ObjectKeyFromObject(secret), err)
}

// write writes the target first: data that is removed from the source must be there (TR-19, TR-20). Each write has
// the version that was read as precondition. If the source has changed meanwhile, it is outdated; a target cannot
// cause that.
func (r *Reconciler) write(ctx context.Context, secret *corev1.Secret, destination holder, data contents, renewAt string) (outdated bool, err error) {
	if destination.inTarget {
		if err := r.writeTarget(ctx, destination, data.target); err != nil {
			return false, err
		}
	}
	changed := secret.DeepCopy()
	changed.Data = data.source
	changed.Annotations[token.AnnotationRenew] = renewAt
	err = kit.Patch(ctx, r.Source, secret, changed)
	return apierrors.IsConflict(err), err
}

func (r *Reconciler) writeTarget(ctx context.Context, destination holder, data map[string][]byte) error {
	changed := destination.DeepCopy()
	changed.Data = data
	if !destination.exists {
		return r.Target.Create(ctx, changed)
	}
	return kit.Patch(ctx, r.Target, destination.Secret, changed)
}

func (r *Reconciler) forget(key types.NamespacedName, uid types.UID) {
	r.rejections.forget(key)
	r.replacementLimit.forget(key)
	r.Metrics.forget(key)
	r.Notes.Forget(uid)
}

func reference(secret *corev1.Secret) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID}
}
