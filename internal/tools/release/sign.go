package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// The media types and the annotations by which cosign identifies signatures and attestations in a registry.
const (
	simpleSigningType   = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	envelopeType        = types.MediaType("application/vnd.dsse.envelope.v1+json")
	signatureAnnotation = "dev.cosignproject.cosign/signature"
)

// simpleSigning is the text that is signed for an image. Its fields are in the order of their names, as in the canonical form of JSON.
type simpleSigning struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// signImage puts the signature of a digest into a layout, under the tag where cosign looks for it.
func (s *signer) signImage(path layout.Path, name, version string, digest v1.Hash) error {
	text := simpleSigning{Optional: map[string]string{"version": version}}
	text.Critical.Identity.Reference, text.Critical.Image.Digest, text.Critical.Type = name, digest.String(), "cosign container image signature"
	payload, err := json.Marshal(text)
	if err != nil {
		return err
	}
	signature, err := s.sign(payload)
	if err != nil {
		return err
	}
	return attest(path, digest, "sig", blob{simpleSigningType, payload}, map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signature)})
}

// envelop signs a statement.
func (s *signer) envelop(payload []byte) ([]byte, error) {
	signs, err := dsse.NewEnvelopeSigner(s)
	if err != nil {
		return nil, err
	}
	signed, err := signs.SignPayload(context.Background(), string(statementMediaType), payload)
	if err != nil {
		return nil, err
	}
	return json.Marshal(signed)
}

// attest puts a statement about a digest into a layout, as an image of one layer under the tag that follows from the
// digest.
func attest(path layout.Path, digest v1.Hash, suffix string, layer blob, annotations map[string]string) error {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(layer.content, layer.kind), Annotations: annotations})
	if err != nil {
		return err
	}
	tag := fmt.Sprintf("%s-%s.%s", digest.Algorithm, digest.Hex, suffix)
	return path.AppendImage(image, layout.WithAnnotations(map[string]string{refName: tag}))
}
