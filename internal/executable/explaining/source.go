package explaining

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-project/espalier/internal/endpoint/explain"
)

// Cluster is a person's connection to a cluster: a kubeconfig and a context, as with kubectl.
type Cluster struct{ Kubeconfig, Context string }

// Flags adds the flags that lead to the cluster.
func (c *Cluster) Flags(set *pflag.FlagSet) {
	set.StringVar(&c.Kubeconfig, "kubeconfig", "", "`path` of the kubeconfig; default: KUBECONFIG or ~/.kube/config")
	set.StringVar(&c.Context, "context", "", "`name` of the kubeconfig's context")
}

// RESTConfig returns the configuration of the client. The kubeconfig belongs to the user who runs the command, so that plug-ins are run.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context, Context: clientcmdapi.Context{}}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.QPS, config.Burst = 50, 100 // Pages of some twenty kinds, one after the other.
	return config, nil
}

// running is a process that answers for itself.
type running struct {
	server, shoot, tokenFile, authority, serverName string
	insecure                                        bool
}

func (r *running) flags(set *pflag.FlagSet) {
	set.StringVar(&r.server, "server", "", "`URL` of a running process to ask, such as https://localhost:10250")
	set.StringVar(&r.tokenFile, "token-file", "", "`file` with the token for --server, - for standard input; default: the kubeconfig's token")
	set.StringVar(&r.authority, "certificate-authority", "", "`file` with the CA certificates of --server")
	set.StringVar(&r.serverName, "tls-server-name", "", "`name` in the certificate of --server, if not that in the URL")
	set.BoolVar(&r.insecure, "insecure-skip-tls-verify", false, "do not verify the certificate of --server: any server that answers gets the token")
}

// tokenLimit bounds a token: those of ServiceAccounts have some 1,500 bytes.
const tokenLimit = 16 << 10

func (r *running) token(c *Cluster) (string, error) {
	if r.tokenFile == "" {
		config, err := c.RESTConfig()
		if err != nil {
			return "", err
		}
		if config.BearerToken != "" {
			return config.BearerToken, nil
		}
		if config.BearerTokenFile == "" {
			return "", errors.New("the kubeconfig has no token: want --token-file, such as with what `kubectl create token` prints")
		}
		r.tokenFile = config.BearerTokenFile
	}
	from := os.Stdin
	if r.tokenFile != "-" {
		file, err := os.Open(r.tokenFile)
		if err != nil {
			return "", err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	token, err := io.ReadAll(io.LimitReader(from, tokenLimit))
	return strings.TrimSpace(string(token)), err
}

func (r *running) ask(ctx context.Context, c *Cluster, q *explain.Question) (explain.Answer, error) {
	token, err := r.token(c)
	if err != nil {
		return explain.Answer{}, err
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: r.serverName, InsecureSkipVerify: r.insecure} //nolint:gosec // Only if a flag says so.
	if r.authority != "" {
		content, err := os.ReadFile(r.authority)
		if err != nil {
			return explain.Answer{}, err
		}
		if security.RootCAs = x509.NewCertPool(); !security.RootCAs.AppendCertsFromPEM(content) {
			return explain.Answer{}, fmt.Errorf("%s has no certificate", r.authority)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: security, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	return explain.Ask(ctx, client, r.server, r.shoot, token, q)
}
