package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// hookFlags are the flags of the command webhooks.
type hookFlags struct {
	executable                         string
	url, service, ca, name, namespaces string
	only                               []string
	installation                       feature.Installation
	// places is set if the webhooks may be for another cluster than the one of the executable.
	places bool
}

// add adds the flags, and with places those about the cluster of the webhooks.
func (f *hookFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.url, "url", "", "base URL under which API servers reach the webhooks, such as https://gardener-"+f.executable+".garden")
	set.StringVar(&f.service, "service", "", "the same as a Service, <namespace>/<name>[:<port>]")
	set.StringVar(&f.ca, "ca-file", "", "file with the CA certificates of the server's certificate, for caBundle")
	usual := "empty means gardener-" + f.executable
	if f.places {
		usual = "empty means <prefix>gardener-" + f.executable + ", in a shoot with -shoot after it"
	}
	set.StringVar(&f.name, "name", "", "name of the webhook configurations; "+usual)
	set.StringSliceVar(&f.only, "only", nil, "names of features whose webhooks are printed; default: all that are on")
	if !f.places {
		return
	}
	set.StringVar(&f.installation.Prefix, "prefix", "", "prefix of the deployment's name, such as virtual-garden-")
	set.BoolVar(&f.installation.Shoot, "shoot", false, "the target is a shoot or the virtual garden, which get no validating webhooks")
	set.BoolVar(&f.installation.Garden, "garden", false, "the target is the cluster of a garden")
	set.StringVar(&f.namespaces, "namespace-selector", "", "label selector of the namespaces of most webhooks; default: namespaces with a role, or the system namespaces of a shoot")
}

// Webhooks returns the command that prints the webhook configurations of the features that a configuration switches
// on.
func (x Executable[C, E]) Webhooks() process.Subcommand {
	own := &hookFlags{executable: x.Name, places: x.Places}
	return process.Subcommand{
		Name:  "webhooks",
		Short: "Print the webhook configurations that this configuration needs",
		Flags: func(set *pflag.FlagSet) { x.Flags(set); own.add(set) },
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			cfg, err := x.Configuration(set)
			if err != nil {
				return err
			}
			deployment, err := own.deployment()
			if err != nil {
				return err
			}
			rows, err := those(feature.Enabled(x.Rows, cfg), own.only)
			if err != nil {
				return err
			}
			return Print(out, feature.WebhookConfigurations(rows, cfg, deployment))
		},
	}
}

// those returns the rows with the webhooks of the given names; no name means all.
func those[C, E any](rows []feature.Row[C, E], names []string) ([]feature.Row[C, E], error) {
	if len(names) == 0 {
		return rows, nil
	}
	var wanted []feature.Row[C, E]
	for _, name := range names {
		i := slices.IndexFunc(rows, func(r feature.Row[C, E]) bool { return r.Name == name && (r.Mutating != nil || r.Validating != nil) })
		if i < 0 {
			return nil, fmt.Errorf("--only: no webhook %q is switched on", name)
		}
		wanted = append(wanted, rows[i])
	}
	return wanted, nil
}

func (f *hookFlags) deployment() (feature.Deployment, error) {
	d := feature.Deployment{Name: cmp.Or(f.name, f.usualName()), Labels: f.labels(), Installation: f.installation}
	var err error
	if f.namespaces != "" {
		if d.Installation.Base, err = metav1.ParseToLabelSelector(f.namespaces); err != nil {
			return d, fmt.Errorf("--namespace-selector: %w", err)
		}
	}
	var ca []byte
	if f.ca != "" {
		if ca, err = authority(f.ca); err != nil {
			return d, fmt.Errorf("--ca-file: %w", err)
		}
	}
	switch {
	case (f.url == "") == (f.service == ""):
		return d, errors.New("say how API servers reach the webhooks: either --url or --service")
	case f.url != "":
		base, err := url.Parse(f.url)
		if err != nil || base.Scheme != "https" || base.Host == "" {
			return d, fmt.Errorf("--url: %q is no URL that begins with https://", f.url)
		}
		d.Reach = func(path string) admissionregistrationv1.WebhookClientConfig {
			full := strings.TrimSuffix(f.url, "/") + path
			return admissionregistrationv1.WebhookClientConfig{URL: &full, CABundle: ca}
		}
	default:
		reference, err := serviceReference(f.service)
		if err != nil {
			return d, err
		}
		d.Reach = func(path string) admissionregistrationv1.WebhookClientConfig {
			service := reference
			service.Path = &path
			return admissionregistrationv1.WebhookClientConfig{Service: &service, CABundle: ca}
		}
	}
	return d, nil
}

// usualName returns different names for a shoot and for the cluster of the executable: in a self-hosted shoot, both
// configurations are in one cluster (A14).
func (f *hookFlags) usualName() string {
	name := f.installation.Prefix + "gardener-" + f.executable
	if f.installation.Shoot {
		name += "-shoot"
	}
	return name
}

// labels returns the owner's label, and the label that excludes the configurations from gardenlet's remediation in
// shoots: a seed may be a shoot (A14).
func (f *hookFlags) labels() map[string]string {
	if !f.places {
		return nil
	}
	labels := map[string]string{"app": f.installation.Prefix + "gardener-" + f.executable}
	if !f.installation.Shoot {
		labels["remediation.webhook.shoot.gardener.cloud/exclude"] = "true"
	}
	return labels
}

func serviceReference(text string) (admissionregistrationv1.ServiceReference, error) {
	reference := admissionregistrationv1.ServiceReference{}
	address, port, hasPort := strings.Cut(text, ":")
	var found bool
	reference.Namespace, reference.Name, found = strings.Cut(address, "/")
	if !found || reference.Namespace == "" || reference.Name == "" || strings.Contains(reference.Name, "/") {
		return reference, fmt.Errorf("--service: %q is not <namespace>/<name>[:<port>]", text)
	}
	if hasPort {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return reference, fmt.Errorf("--service: %q is no port", port)
		}
		as := int32(number)
		reference.Port = &as
	}
	return reference, nil
}
