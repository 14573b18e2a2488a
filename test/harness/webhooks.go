package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/webhook/auditpolicy"
	"github.com/espalier-project/espalier/internal/webhook/authenticationconfig"
	"github.com/espalier-project/espalier/internal/webhook/authorizationconfig"
	"github.com/espalier-project/espalier/internal/webhook/internaldomain"
	"github.com/espalier-project/espalier/internal/webhook/kubeconfigsecret"
	"github.com/espalier-project/espalier/internal/webhook/namespacedeletion"
	"github.com/espalier-project/espalier/internal/webhook/providersecretlabels"
	"github.com/espalier-project/espalier/internal/webhook/resourcesize"
	"github.com/espalier-project/espalier/internal/webhook/shootkubeconfigsecretref"
	"github.com/espalier-project/espalier/internal/webhook/updaterestriction"
)

// Webhooks returns the webhook configurations that an executable prints for the configuration in a file. Its processes are reached under a
// base URL, with a certificate that is signed by the one in the file authority.
func Webhooks(binary, configuration, url, authority string, arguments ...string) ([]*unstructured.Unstructured, error) {
	command := exec.Command(binary, append([]string{"webhooks", "--config=" + configuration, "--url=" + url, "--ca-file=" + authority}, arguments...)...)
	var failed bytes.Buffer
	command.Stderr = &failed
	printed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s webhooks: %w: %s", filepath.Base(binary), err, failed.String())
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

// Webhooks returns the configurations of all webhooks of admission-controller that judge what users write, under one name.
func (g *Garden) Webhooks(name string, limits *config.ResourceAdmissionConfiguration) ([]client.Object, error) {
	ca, err := g.CA()
	if err != nil {
		return nil, err
	}
	reach := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(fmt.Sprintf("https://127.0.0.1:%d%s", g.Web, path)), CABundle: ca}
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	judge := func(path string, entries ...admissionregistrationv1.ValidatingWebhook) {
		for _, entry := range entries {
			entry.ClientConfig = reach(path)
			validating.Webhooks = append(validating.Webhooks, entry)
		}
	}
	judge(auditpolicy.Path, auditpolicy.Registration())
	judge(authenticationconfig.Path, authenticationconfig.Registration())
	judge(authorizationconfig.Path, authorizationconfig.Registration())
	judge(internaldomain.Path, internaldomain.Registration())
	judge(kubeconfigsecret.Path, kubeconfigsecret.Registration())
	judge(namespacedeletion.Path, namespacedeletion.Registration())
	judge(resourcesize.Path, resourcesize.Registrations(limits)...)
	judge(shootkubeconfigsecretref.Path, shootkubeconfigsecretref.Registration())
	judge(updaterestriction.Path, updaterestriction.Registration())
	labels := providersecretlabels.Registration()
	labels.ClientConfig = reach(providersecretlabels.Path)
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistrationv1.MutatingWebhook{labels}}
	return []client.Object{validating, mutating}, nil
}
