package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority is the certificate authority of a cluster.
type authority struct {
	certificate    *x509.Certificate
	key            *ecdsa.PrivateKey
	certificatePEM []byte
}

// newAuthority makes an authority and writes what the control plane needs: ca, apiserver and the ServiceAccount key.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "espalier-local"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
	}
	a := &authority{certificate: template, key: key}
	der, err := a.sign(template, key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.certificatePEM = certificatePEM(der)
	keyPEM, err := keyPEMOf(key)
	if err != nil {
		return nil, err
	}
	if err := writePair(filepath.Join(dir, "ca.crt"), a.certificatePEM, filepath.Join(dir, "ca.key"), keyPEM); err != nil {
		return nil, err
	}
	if err := a.writeServing(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")); err != nil {
		return nil, err
	}
	serviceAccounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if keyPEM, err = keyPEMOf(serviceAccounts); err != nil {
		return nil, err
	}
	return a, os.WriteFile(filepath.Join(dir, "sa.key"), keyPEM, 0o600)
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0)
	return x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
}

func (a *authority) issue(template *x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := a.sign(template, private)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyPEMOf(private)
	return certificatePEM(der), key, err
}

func (a *authority) issueClient(user string, groups ...string) (certificate, key []byte, err error) {
	return a.issue(&x509.Certificate{
		Subject:  pkix.Name{CommonName: user, Organization: groups},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) client(user string, groups ...string) (tls.Certificate, error) {
	certificate, key, err := a.issueClient(user, groups...)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

func (a *authority) writeServing(certificateFile, keyFile string) error {
	certificate, key, err := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	return writePair(certificateFile, certificate, keyFile, key)
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// WriteKubeconfig writes a kubeconfig of a user with everything embedded.
func (c *Cluster) WriteKubeconfig(path, user string, groups ...string) error {
	certificate, key, err := c.authority.issueClient(user, groups...)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{c.Name: {Server: c.URL(), CertificateAuthorityData: c.authority.certificatePEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:       map[string]*clientcmdapi.Context{c.Name: {Cluster: c.Name, AuthInfo: user}},
		CurrentContext: c.Name,
	}, path)
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEMOf(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func writePair(certificateFile string, certificate []byte, keyFile string, key []byte) error {
	if err := os.WriteFile(certificateFile, certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(keyFile, key, 0o600)
}
