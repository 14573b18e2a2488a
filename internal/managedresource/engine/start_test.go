package engine

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/test/expect"
)

func TestMain(m *testing.M) {
	// The library's own remember, across bubbles, when there last was an error.
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// sourceManager is a manager with a source that answers each list with answer.
type sourceManager struct {
	manager.Manager
	client.Reader
	answer func() error
}

func (m *sourceManager) GetAPIReader() client.Reader { return m }
func (m *sourceManager) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return m.answer()
}

// The start waits for a source that is away, not ready, and ends only for what waiting does not mend.
func TestStartAwaitsTheSource(t *testing.T) {
	gr := schema.GroupResource{Group: "resources.gardener.cloud", Resource: "managedresources"}
	for name, tc := range map[string]struct {
		clusterID string
		err       error
		mended    bool
		want      string
		after     time.Duration
	}{
		"it is there":                    {after: 0},
		"away, then back":                {err: errors.New("connection refused"), mended: true, after: 10 * time.Minute},
		"no such kind yet":               {err: apierrors.NewNotFound(gr, ""), mended: true, after: 10 * time.Minute},
		"a missing right, given in time": {err: apierrors.NewForbidden(gr, "", errors.New("x")), mended: true, after: time.Minute},
		"a missing right": {err: apierrors.NewForbidden(gr, "", errors.New(`User "u" cannot list resource "managedresources"`)),
			want: `User "u" cannot list resource "managedresources"`, after: 2 * time.Minute},
		"MRC-7a no identity": {clusterID: config.ClusterIDFromCluster, want: `configmaps "cluster-identity" not found`, after: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				mgr := &sourceManager{answer: func() error {
					if tc.mended && time.Since(began) >= tc.after {
						return nil
					}
					return tc.err
				}}
				cfg := &config.ResourceManagerConfiguration{}
				config.SetDefaults(cfg)
				cfg.Controllers.ClusterID = ptr.To(tc.clusterID)
				cfg.Controllers.CacheSyncTimeout = &metav1.Duration{Duration: 2 * time.Minute}
				e := &Engine{
					Options: Options{Config: cfg, Manager: mgr, Source: fake.NewClientset(), Clock: clock.RealClock{}, Log: logr.Discard()},
					current: &run{secrets: source.NewSecrets(nil, nil, logr.Discard())},
				}
				if tc.after > 0 {
					time.AfterFunc(tc.after/2, func() {
						expect.ErrorIs(t, e.Ready(), tc.err, "readiness meanwhile")
					})
				}
				_, err := e.awaitSource(t.Context())
				if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				if took := time.Since(began); took < tc.after || took > tc.after+2*startRetry {
					t.Errorf("the wait took %s, want %s", took, tc.after)
				}
				expect.Succeed(t, e.Ready(), "readiness afterwards")
			})
		})
	}
}

// The leader is not ready without the right to list Secrets, and says that it is missing.
func TestReadinessNamesTheMissingRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fake.NewClientset()
		cluster.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("nobody allows it"))
		})
		secrets := source.NewSecrets(cluster.CoreV1(), nil, logr.Discard())
		e := &Engine{current: &run{secrets: secrets}}
		expect.Succeed(t, e.Ready(), "who does not lead needs no Secrets")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go secrets.Start(ctx) //nolint:errcheck // It ends with the context.
		synctest.Wait()
		const want = "the right to list secrets in all namespaces is missing"
		expect.ErrorContains(t, e.Ready(), want)
	})
}
