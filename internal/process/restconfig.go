package process

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// RESTConfig returns the configuration of a cluster's client. It uses only harmless fields of a kubeconfig (CCH-1 …
// CCH-3, CCH-62).
func RESTConfig(connection *shared.ClientConnection) (*rest.Config, error) {
	config, err := load(connection.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return withLimits(config, connection), nil
}

// TenantConfig is RESTConfig for one of many clusters with kubeconfigs from untrusted writers: Kubeconfig checks it.
func TenantConfig(connection *shared.ClientConnection) (*rest.Config, error) {
	content, err := os.ReadFile(connection.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	config, err := Kubeconfig(content)
	if err != nil {
		return nil, err
	}
	return withLimits(config, connection), nil
}

func withLimits(config *rest.Config, connection *shared.ClientConnection) *rest.Config {
	config.QPS, config.Burst = connection.QPS, int(connection.Burst)
	config.AcceptContentTypes, config.ContentType = connection.AcceptContentTypes, connection.ContentType
	config.WarningHandlerWithContext = cluster.NewWarnings(clock.RealClock{})
	// The libraries set a name only in HTTP clients that they create themselves, but managed fields and audit logs
	// need it in all.
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	return config
}

var errNoConfiguration = errors.New("invalid configuration: no configuration has been provided, " +
	"set kubeconfig of the client connection, or KUBECONFIG, or TARGET_KUBECONFIG for a target")

func load(path string) (*rest.Config, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, errNoConfiguration
		}
		return cluster.RefuseRedirects(config), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	kubeconfig, err := cluster.DecodeKubeconfig(content)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	return checked(kubeconfig)
}

// checked returns the configuration of a kubeconfig, or an error if it has harmful fields.
func checked(kubeconfig *clientcmdapi.Config) (*rest.Config, error) {
	for name, user := range kubeconfig.AuthInfos {
		if err := checkUser(name, user); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	return cluster.RefuseRedirects(config), nil
}

// Kubeconfig returns the configuration of a kubeconfig from an untrusted writer, such as one in a Secret. The
// kubeconfig must not have names of files: the process would send a token from a file to the writer's server.
func Kubeconfig(content []byte) (*rest.Config, error) {
	kubeconfig, err := cluster.DecodeKubeconfig(content)
	if boundedyaml.IsLimit(err) {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	if err != nil {
		return nil, errors.New("it is no kubeconfig") // The error may have content of a Secret.
	}
	for name, user := range kubeconfig.AuthInfos {
		if user.TokenFile != "" {
			return nil, fmt.Errorf("token files are not supported in the kubeconfig of a shoot (user %q)", name)
		}
	}
	for name, named := range kubeconfig.Clusters {
		switch {
		case named.CertificateAuthority != "":
			return nil, fmt.Errorf("files of certificate authorities are not supported in the kubeconfig of a shoot (cluster %q)", name)
		case named.ProxyURL != "":
			return nil, fmt.Errorf("proxies are not supported in the kubeconfig of a shoot (cluster %q)", name)
		}
	}
	return checked(kubeconfig)
}

// checkUser refuses a user that would make the process read files or run programs of the writer's choice (CCH-2).
func checkUser(name string, user *clientcmdapi.AuthInfo) error {
	valid := []string{"client-certificate-data", "client-key-data", "token", "username", "password", "tokenFile"}
	refuse := func(what string) error {
		return fmt.Errorf("%s are not supported (user %q), these are the valid fields: %v", what, name, valid)
	}
	switch {
	case user.ClientCertificate != "":
		return refuse("client certificate files")
	case user.ClientKey != "":
		return refuse("client key files")
	case user.Impersonate != "" || len(user.ImpersonateGroups) > 0 || user.ImpersonateUID != "" || len(user.ImpersonateUserExtra) > 0:
		return fmt.Errorf("impersonation is not supported, these are the valid fields: %v", valid)
	case user.AuthProvider != nil:
		return refuse("auth provider configurations")
	case user.Exec != nil:
		return refuse("exec configurations")
	}
	return nil
}

// SameCluster reports whether two configurations are for the same cluster and the same user, so that one client is
// sufficient (OPB-12).
func SameCluster(a, b *rest.Config) bool {
	return a.Host == b.Host && a.APIPath == b.APIPath && a.Username == b.Username && a.Password == b.Password &&
		a.BearerToken == b.BearerToken && a.BearerTokenFile == b.BearerTokenFile &&
		a.ServerName == b.ServerName && a.Insecure == b.Insecure &&
		string(a.CAData) == string(b.CAData) && a.CAFile == b.CAFile &&
		string(a.CertData) == string(b.CertData) && string(a.KeyData) == string(b.KeyData)
}
