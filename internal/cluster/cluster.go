package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/ratelimit"
)

// Connection has the clients of an API server.
type Connection struct {
	// REST is the configuration; all clients share its RateLimiter, if it has one.
	REST *rest.Config
	// HTTP is the client that all others use.
	HTTP *http.Client
}

// Cluster is an API server with its cache.
type Cluster struct {
	Connection
	// Cache has the declared reads.
	Cache cache.Cache
	// Client reads from the API server without the cache, and writes.
	Client client.Client
	// Lookups distributes the live reads of webhooks fairly among clients.
	Lookups *ratelimit.Queue

	scheme *runtime.Scheme
	live   func() (client.Client, error)
}

// Options are the settings of a cluster's cache.
type Options struct {
	Scheme *runtime.Scheme
	// Reads are the reads of the cluster; reads of other clusters are ignored.
	Reads []feature.Read
	// Namespaces are the namespaces of the kept objects of namespaced kinds; empty means all (COM-3: reads are
	// restricted to the configured namespaces).
	Namespaces []string
	// Resync is the time after which all kept objects are processed again.
	Resync *time.Duration
	// Restored, if set, is called with the proof when a list is older than an earlier read.
	Restored func(proof string)
}

// Connect returns a connection with its own HTTP client.
func Connect(cfg *rest.Config) (Connection, error) {
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return Connection{}, err
	}
	return Connection{REST: cfg, HTTP: httpClient}, nil
}

// Streams is the default of kube-apiserver's --http2-max-streams-per-connection: the requests that one HTTP/2
// connection carries at once. More of them would open another connection.
const Streams = 100

// Own returns a connection to the same API server that no other client uses, without a client-side rate limit: a
// ratelimit.Queue limits its requests.
func (c Connection) Own() (Connection, error) {
	cfg := rest.CopyConfig(c.REST)
	cfg.QPS, cfg.RateLimiter = -1, nil
	// client-go shares connections between configurations, unless their Dial differs.
	cfg.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return Connect(cfg)
}

// Protobuf returns a configuration for built-in kinds, for which Protobuf is the cheapest encoding.
func Protobuf(cfg *rest.Config) *rest.Config {
	result := rest.CopyConfig(cfg)
	if result.ContentType == "" {
		result.ContentType = "application/vnd.kubernetes.protobuf"
		result.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	return result
}

// Caching returns the cluster with a cache of the declared reads, and a client. It sends no request before Start.
func (c Connection) Caching(name feature.Cluster, o Options) (*Cluster, error) {
	mapper, err := Mapper(name, o.Reads)(c.REST, c.HTTP)
	if err != nil {
		return nil, err
	}
	live, err := client.New(c.REST, client.Options{HTTPClient: c.HTTP, Scheme: o.Scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	options, err := CacheOptions(name, o)
	if err != nil {
		return nil, err
	}
	options.HTTPClient, options.Mapper = c.HTTP, mapper
	kept, err := cache.New(c.REST, options)
	if err != nil {
		return nil, err
	}
	return newCluster(c, kept, live), nil
}

// newCluster returns a cluster with a queue for as many concurrent live reads as its own connection allows.
func newCluster(c Connection, kept cache.Cache, asking client.Client) *Cluster {
	return &Cluster{
		Connection: c, Cache: kept, Client: asking, Lookups: ratelimit.NewQueue(Streams, ratelimit.Waiting), scheme: asking.Scheme(),
		live: sync.OnceValues(func() (client.Client, error) {
			own, err := c.Own()
			if err != nil {
				return nil, err
			}
			return client.New(own.REST, client.Options{HTTPClient: own.HTTP, Scheme: asking.Scheme(), Mapper: asking.RESTMapper()})
		}),
	}
}

// Live returns a client over the cluster's own connection for live reads, which only Lookups delays.
func (c *Cluster) Live() (client.Client, error) { return c.live() }

// Managed returns the cluster of a manager, whose cache has CacheOptions.
func Managed(mgr manager.Manager, cfg *rest.Config) (*Cluster, error) {
	live, err := client.New(cfg, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	return newCluster(Connection{REST: cfg, HTTP: mgr.GetHTTPClient()}, mgr.GetCache(), live), nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *Cluster) NeedLeaderElection() bool { return false }

// Start fills the cache and keeps it.
func (c *Cluster) Start(ctx context.Context) error { return c.Cache.Start(ctx) }

// Synced reports whether the cache is synced, and waits for it at most for the budget.
func (c *Cluster) Synced(budget time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	return c.Cache.WaitForCacheSync(ctx)
}

// errNoKind is the error for a read without a kind.
var errNoKind = errors.New("a read names no kind")
