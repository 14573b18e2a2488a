package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"
)

// signer signs with a key of cosign's, or with one that openssl made.
type signer struct{ key *ecdsa.PrivateKey }

// sign signs the SHA-256 digest of a content. The signature follows from key and content alone (RFC 6979), so that a release is the same
// whenever it is signed.
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
		if opened, err = open(block.Bytes, password); err == nil {
			parsed, err = x509.ParsePKCS8PrivateKey(opened)
		}
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

// envelope is the form in which cosign keeps a private key.
type envelope struct {
	KDF struct {
		Name   string `json:"name"`
		Params struct {
			N int `json:"N"`
			R int `json:"r"`
			P int `json:"p"`
		} `json:"params"`
		Salt []byte `json:"salt"`
	} `json:"kdf"`
	Cipher struct {
		Name  string `json:"name"`
		Nonce []byte `json:"nonce"`
	} `json:"cipher"`
	Ciphertext []byte `json:"ciphertext"`
}

// open decrypts a key of cosign's.
func open(sealed []byte, password string) ([]byte, error) {
	var e envelope
	if err := json.Unmarshal(sealed, &e); err != nil {
		return nil, err
	}
	if e.KDF.Name != "scrypt" || e.Cipher.Name != "nacl/secretbox" || len(e.Cipher.Nonce) != 24 {
		return nil, fmt.Errorf("%s with %s is not known here", e.Cipher.Name, e.KDF.Name)
	}
	// cosign takes 32768 to 65536; more than a few times that is no key but a trap.
	if e.KDF.Params.N > 1<<20 || e.KDF.Params.R > 16 || e.KDF.Params.P > 16 {
		return nil, errors.New("to open the key would cost too much")
	}
	derived, err := scrypt.Key([]byte(password), e.KDF.Salt, e.KDF.Params.N, e.KDF.Params.R, e.KDF.Params.P, 32)
	if err != nil {
		return nil, err
	}
	opened, ok := secretbox.Open(nil, e.Ciphertext, (*[24]byte)(e.Cipher.Nonce), (*[32]byte)(derived))
	if !ok {
		return nil, errors.New("COSIGN_PASSWORD does not open the key")
	}
	return opened, nil
}
