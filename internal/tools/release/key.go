package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// signer signs with a key of cosign's, or with one that openssl made.
type signer struct{ key *ecdsa.PrivateKey }

// Sign implements dsse.Signer.
func (s *signer) Sign(_ context.Context, content []byte) ([]byte, error) { return s.sign(content) }

// KeyID implements dsse.Signer. It is empty, because a verifier has only one key.
func (s *signer) KeyID() (string, error) { return "", nil }

// sign signs the SHA-256 digest of a content. The signature depends only on the key and the content (RFC 6979), so
// that a release is the same whenever it is signed.
func (s *signer) sign(content []byte) ([]byte, error) {
	digest := sha256.Sum256(content)
	return s.key.Sign(nil, digest[:], crypto.SHA256)
}

// readKey reads a private key as PEM: SEC 1, PKCS #8, or in cosign's own form, which a password opens.
func readKey(path, password string) (*signer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			return nil, fmt.Errorf("%s has no private key", path)
		}
		if block.Type == "EC PARAMETERS" { // openssl ecparam writes them before the key.
			continue
		}
		key, err := parseKey(block, password)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return &signer{key}, nil
	}
}

func parseKey(block *pem.Block, password string) (*ecdsa.PrivateKey, error) {
	var parsed any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		var opened []byte
		if opened, err = encrypted.Decrypt(block.Bytes, []byte(password)); err != nil {
			return nil, fmt.Errorf("COSIGN_PASSWORD does not open the key: %w", err)
		}
		parsed, err = x509.ParsePKCS8PrivateKey(opened)
	default:
		return nil, fmt.Errorf("%s is no private key that is known here", block.Type)
	}
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key is no ECDSA key on the curve P-256")
	}
	return key, nil
}
