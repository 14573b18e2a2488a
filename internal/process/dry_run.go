package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/dryrun"
)

const (
	// restFor is the quiet time after which a pass counts as done. It is longer than the pauses in a pass: between
	// two reads of a missing object (500 ms), and before a burst of events is processed (100 ms).
	restFor = 2 * time.Second
	// restLook is the interval of these checks, and restReported the interval of progress reports.
	restLook     = 50 * time.Millisecond
	restReported = 5 * time.Second
	// troubledFor limits the time of failing reads before the pass ends without a result: waiting does not help
	// against a missing permission.
	troubledFor = 5 * time.Second
	// greeting limits the first request to each cluster.
	greeting = 10 * time.Second
)

// DryRun runs a process without sending its writes.
type DryRun struct {
	// Log is the logger of the process. It adds the name of the controller to requests.
	Log logr.Logger

	progress io.Writer
	// limit is the time limit of Run.
	limit   time.Duration
	names   []string
	servers []*dryrun.Server
	configs []*rest.Config
}

func newDryRun(progress io.Writer, limit time.Duration) *DryRun {
	return &DryRun{Log: dryrun.Tracing(NewLogger(shared.LogLevelError, shared.LogFormatText, progress)), progress: progress, limit: limit}
}

// RESTConfig is like the function RESTConfig, for a client that only reads. Two configurations of the same cluster
// share the writes that were not sent.
func (r *DryRun) RESTConfig(name string) func(*shared.ClientConnection) (*rest.Config, error) {
	return func(connection *shared.ClientConnection) (*rest.Config, error) {
		config, err := RESTConfig(connection)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(r.configs, func(c *rest.Config) bool { return c.Host == config.Host && c.APIPath == config.APIPath })
		if at < 0 {
			at = len(r.servers)
			r.names, r.servers, r.configs = append(r.names, name), append(r.servers, dryrun.New(name)), append(r.configs, config)
		}
		config.Wrap(r.servers[at].Wrap)
		return config, nil
	}
}

// Run runs a manager until no work is left; begun returns an error until everything has been started.
func (r *DryRun) Run(ctx context.Context, mgr manager.Manager, begun func() error) error {
	for i, config := range r.configs {
		if err := r.greet(r.names[i], config); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.limit, fmt.Errorf("not done within %s", r.limit))
	ended, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		ended <- mgr.Start(ctx)
	}()
	err := r.awaitRest(ctx, ended, begun)
	troubles := r.troubles()
	cancel()
	<-done
	return errors.Join(append([]error{err}, troubles...)...)
}

// troubles returns the errors of failing reads.
func (r *DryRun) troubles() []error {
	var troubles []error
	for _, s := range r.servers {
		troubles = append(troubles, s.Troubles()...)
	}
	return troubles
}

// greet reads the version of a cluster, so that a cluster that is not available is reported at once.
func (r *DryRun) greet(name string, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout, config.RateLimiter = greeting, nil
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("%s cluster: %w", name, err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return fmt.Errorf("%s cluster: %w", name, err)
	}
	r.print("%s cluster: %s, version %s", name, config.Host, version.GitVersion)
	return nil
}

func (r *DryRun) print(format string, values ...any) {
	_, _ = fmt.Fprintf(r.progress, format+"\n", values...)
}

// activity has the counters that change while work is left.
type activity struct {
	dryrun.Activity
	// rounds counts the reconciliations of all controllers.
	rounds float64
	// busy counts requests and reconciliations in progress or waiting.
	busy float64
}

func (r *DryRun) awaitRest(ctx context.Context, ended <-chan error, begun func() error) error {
	tick := time.NewTicker(restLook)
	defer tick.Stop()
	var last activity
	calm := 0 // Checks in a row and not seconds, because a busy machine checks less often.
	known, well := time.Now(), time.Now()
	for {
		select {
		case err := <-ended:
			if err == nil && ctx.Err() == nil {
				err = errors.New("the process ended early")
			}
			return errors.Join(err, context.Cause(ctx))
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), begun())
		case <-tick.C:
		}
		current, err := r.activity()
		if err != nil {
			return err
		}
		now, waiting := time.Now(), begun()
		if calm++; waiting != nil || current.busy > 0 || current != last {
			last, calm = current, 0
		}
		if len(r.troubles()) == 0 {
			well = now
		}
		if now.Sub(well) >= troubledFor {
			return fmt.Errorf("reads have failed for %s", troubledFor)
		}
		if calm >= int(restFor/restLook) {
			r.print("at rest: %d requests, %d writes", current.Begun, current.Writes)
			return nil
		}
		if now.Sub(known) >= restReported {
			known = now
			r.print("%d requests, %d objects looked at, %d waiting, %d writes so far", current.Begun, int(current.rounds), int(current.busy), current.Writes)
			if waiting != nil {
				r.print("%v", waiting)
			}
		}
	}
}

// Rounds returns the number of reconciliations of a controller of this process.
func Rounds(controller string) (int, error) {
	rounds, _, err := reconciled()
	return int(rounds[controller]), err
}

// reconciled returns the number of reconciliations of each controller so far, and the number of those in progress or
// waiting.
func reconciled() (rounds map[string]float64, busy float64, err error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return nil, 0, fmt.Errorf("reading the metrics of controllers: %w", err)
	}
	rounds = map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "controller_runtime_reconcile_total":
				for _, label := range metric.GetLabel() {
					if label.GetName() == "controller" {
						rounds[label.GetValue()] += metric.GetCounter().GetValue()
					}
				}
			case "controller_runtime_active_workers", "workqueue_depth":
				busy += metric.GetGauge().GetValue()
			}
		}
	}
	return rounds, busy, nil
}

func (r *DryRun) activity() (activity, error) {
	var a activity
	for _, s := range r.servers {
		of := s.Activity()
		a.Begun += of.Begun
		a.Writes += of.Writes
		a.busy += float64(of.Open)
	}
	rounds, busy, err := reconciled()
	for _, n := range rounds {
		a.rounds += n
	}
	a.busy += busy
	return a, err
}
