package targets

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// credentials are the access to a target, and its overrides.
type credentials struct {
	// config has no bearer token: the token may change while the target is managed.
	config    *rest.Config
	token     string
	overrides *config.TargetOverrides
	// digest is of all but the token.
	digest [sha256.Size]byte
}

// errNoCredentials is about a target that has no credentials, as one that hibernates.
var errNoCredentials = errors.New("the target has no credentials")

// resolver reads the credentials of a target.
type resolver func(context.Context) (*credentials, error)

// fromSecrets reads them from the Secrets of a namespace.
func (t *Targets) fromSecrets(namespace string) resolver {
	c := t.Config.Targets
	return func(ctx context.Context) (*credentials, error) {
		read := func(key *config.SecretKey, optional bool) ([]byte, error) {
			return readKey(ctx, t.Secrets, namespace, key, optional)
		}
		kubeconfig, err := read(c.Kubeconfig, false)
		if err != nil {
			return nil, err
		}
		found, err := t.load(kubeconfig)
		if err != nil {
			return nil, err
		}
		if c.Server != "" {
			found.config.Host = strings.ReplaceAll(c.Server, config.NamespacePlaceholder, namespace)
		}
		if ca, err := read(c.CA, false); err != nil {
			return nil, err
		} else if len(ca) > 0 {
			found.config.CAData, found.config.Insecure = ca, false
		}
		if token, err := read(c.Token, false); err != nil {
			return nil, err
		} else if len(token) > 0 {
			found.token = strings.TrimSpace(string(token))
		}
		overrides, err := read(c.Overrides, true)
		if err != nil {
			return nil, err
		}
		return found, found.complete(overrides)
	}
}

// readKey returns the value of a key; none if nothing names one.
func readKey(ctx context.Context, secrets *source.Secrets, namespace string, key *config.SecretKey,
	optional bool) ([]byte, error) {
	if key == nil {
		return nil, nil
	}
	data, _, err := secrets.Get(ctx, types.NamespacedName{Namespace: namespace, Name: key.SecretName})
	switch {
	case apierrors.IsNotFound(err) && optional:
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: there is no Secret %s/%s", errNoCredentials, namespace, key.SecretName)
	case err != nil:
		return nil, err
	}
	value := data[key.Key]
	if len(value) == 0 && !optional {
		return nil, fmt.Errorf("%w: Secret %s/%s has no key %s", errNoCredentials, namespace, key.SecretName, key.Key)
	}
	return value, nil
}

// fromEntry reads them from a file of a folder, and from the kubeconfig that it names.
func (t *Targets) fromEntry(file string) (namespace string, _ resolver, err error) {
	entry, err := readEntry(file)
	if err != nil {
		return "", nil, err
	}
	return entry.Namespace, func(context.Context) (*credentials, error) {
		entry, err := readEntry(file)
		if err != nil {
			return nil, err
		}
		kubeconfig := entry.Kubeconfig
		if !filepath.IsAbs(kubeconfig) {
			kubeconfig = filepath.Join(filepath.Dir(file), kubeconfig)
		}
		content, err := os.ReadFile(kubeconfig)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", errNoCredentials, err)
		}
		if err != nil {
			return nil, err
		}
		found, err := t.load(content)
		if err != nil {
			return nil, err
		}
		found.overrides = &entry.TargetOverrides
		return found, found.sign()
	}, nil
}

// suffix is the file extension of entries.
const suffix = ".yaml"

func readEntry(file string) (*config.TargetEntry, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	entry := &config.TargetEntry{}
	if err := boundedyaml.UnmarshalStrict(content, entry); err != nil {
		return nil, fmt.Errorf("error decoding entry %s: %w", filepath.Base(file), err)
	}
	if entry.Namespace == "" {
		entry.Namespace = strings.TrimSuffix(filepath.Base(file), suffix)
	}
	if err := config.ValidateTargetEntry(entry).ToAggregate(); err != nil {
		return nil, fmt.Errorf("entry %s: %w", filepath.Base(file), err)
	}
	return entry, nil
}

// load reads a kubeconfig; without one all comes from elsewhere.
func (t *Targets) load(kubeconfig []byte) (*credentials, error) {
	if len(kubeconfig) == 0 {
		return &credentials{config: &rest.Config{}}, nil
	}
	loaded, err := t.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	found := &credentials{config: loaded, token: loaded.BearerToken}
	loaded.BearerToken = ""
	return found, nil
}

// complete reads the overrides of the target.
func (c *credentials) complete(overrides []byte) error {
	if len(overrides) > 0 {
		c.overrides = &config.TargetOverrides{}
		if err := boundedyaml.UnmarshalStrict(overrides, c.overrides); err != nil {
			return errors.New("the overrides of the target are no TargetOverrides in YAML") // The error has content of a Secret.
		}
		if err := config.ValidateOverrides(c.overrides).ToAggregate(); err != nil {
			return fmt.Errorf("overrides of the target: %w", err)
		}
	}
	return c.sign()
}

// sign computes the digest.
func (c *credentials) sign() error {
	content, err := json.Marshal(struct {
		Host, Path, User, Password, ServerName string
		Insecure                               bool
		CA, Cert, Key                          []byte
		Overrides                              *config.TargetOverrides
	}{
		c.config.Host, c.config.APIPath, c.config.Username, c.config.Password, c.config.ServerName, c.config.Insecure,
		c.config.CAData, c.config.CertData, c.config.KeyData, c.overrides,
	})
	if err != nil {
		return err
	}
	c.digest = sha256.Sum256(content)
	return nil
}

// Connections send requests to one target.
type Connections struct {
	// Inner has watches, and all that is small. Bulk has lists, and ends its connections when they are idle.
	Inner, Bulk http.RoundTripper
	// End ends the connections.
	End func()
}

// dial returns connections for one target only: client-go shares its connections between configurations and never frees
// them.
func dial(c *rest.Config) (*Connections, error) {
	tls, err := rest.TLSConfigFor(c)
	if err != nil {
		return nil, err
	}
	pool := func(idle time.Duration) *http.Transport {
		return utilnet.SetTransportDefaults(&http.Transport{
			TLSClientConfig: tls.Clone(), TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: idleConnections,
			IdleConnTimeout:        idle,
			DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: idleTimeout / 3}).DialContext,
			MaxResponseHeaderBytes: headerBytes,
		})
	}
	few, lists := pool(idleTimeout), pool(bulkTimeout)
	inner, err := rest.HTTPWrappersForConfig(c, few)
	if err != nil {
		return nil, err
	}
	bulk, err := rest.HTTPWrappersForConfig(c, lists)
	return &Connections{inner, bulk, func() { few.CloseIdleConnections(); lists.CloseIdleConnections() }}, err
}

const (
	// dialTimeout limits the time until a connection and its TLS session stand: as long as one probe may take.
	dialTimeout = 10 * time.Second
	// idleConnections are few: HTTP/2 needs one.
	idleConnections, idleTimeout = 2, 90 * time.Second
	// bulkTimeout is longer than the pauses between the lists of a start.
	bulkTimeout = 10 * time.Second
	// headerBytes is ten times what API servers send.
	headerBytes = 64 << 10
)
