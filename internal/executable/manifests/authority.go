package manifests

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxAuthority bounds a file of certificates, in bytes: its content is copied into each webhook of an object that
// must fit into a request to an API server.
const maxAuthority = 1 << 20

// authority reads the certificates of a file, as PEM without the text between them. Everyone who may read a webhook
// configuration can read its caBundle, so a file with any other block is refused; an error has the type of a block,
// and nothing of its content.
func authority(file string) ([]byte, error) {
	content, err := readAtMost(file, maxAuthority)
	if err != nil {
		return nil, err
	}
	var certificates bytes.Buffer
	begun, read := bytes.Count(content, []byte("-----BEGIN ")), 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		read++
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: want certificates only, found a block of type %q", file, block.Type)
		}
		// The parser's error may quote its input.
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, fmt.Errorf("%s: block %d of type %q is no certificate", file, read, block.Type)
		}
		if err := pem.Encode(&certificates, &pem.Block{Type: block.Type, Bytes: block.Bytes}); err != nil {
			return nil, err
		}
	}
	switch {
	case read != begun:
		return nil, fmt.Errorf("%s: %d of %d blocks are no PEM", file, begun-read, begun)
	case read == 0:
		return nil, fmt.Errorf("%s: want certificates as PEM, found no block", file)
	}
	return certificates.Bytes(), nil
}

// readAtMost reads a file, or returns an error if it is larger than a limit in bytes.
func readAtMost(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", file, limit)
	}
	return content, nil
}
