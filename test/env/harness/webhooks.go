package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
)

// Webhooks returns the webhook configurations that an executable prints for the configuration in a file. Its processes are reached under a
// base URL, with a certificate that is signed by the one in the file authority.
func Webhooks(binary, configuration, url, authority string, arguments ...string) ([]*unstructured.Unstructured, error) {
	printed, err := Printed(binary, append([]string{"webhooks", "--config=" + configuration, "--url=" + url, "--ca-file=" + authority}, arguments...)...)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(printed), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
}

// Webhooks returns the configurations of all webhooks of a running admission-controller but its restrictions, under one name.
func (g *Garden) Webhooks(p *Process, name string) ([]*unstructured.Unstructured, error) {
	var others []string
	for _, row := range admissioncontroller.Table() {
		if (row.Mutating != nil || row.Validating != nil) && row.Name != restriction.SeedName && row.Name != restriction.ShootName {
			others = append(others, row.Name)
		}
	}
	return g.printed(p, name, others...)
}

// printed are the webhook configurations of some features of a running admission-controller.
func (g *Garden) printed(p *Process, name string, features ...string) ([]*unstructured.Unstructured, error) {
	return Webhooks(p.command.Path, p.config, fmt.Sprintf("https://127.0.0.1:%d", g.Web), filepath.Join(g.dir, "ca.crt"), "--name="+name, "--only="+strings.Join(features, ","))
}
