package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/inspect"
	"github.com/espalier-project/espalier/internal/plaintext"
	"github.com/espalier-project/espalier/internal/process"
)

// manifestsVerb is the verb that prints the objects in the Secrets of a ManagedResource.
func manifestsVerb() process.Subcommand {
	var to connection
	output := asYAML
	return process.Subcommand{
		Name: "manifests", Operand: "MANAGEDRESOURCE", Fault: faultCode,
		Short: "Print the manifests of a ManagedResource, decompressed and without the values of Secrets",
		Long: "The Secrets, which are in the source, are decoded with the limits of resource-manager.\n" +
			"Each document has a comment with its Secret, key and number. Values of Secrets are masked.",
		Codes: []process.Term{
			{Name: "0", Text: "all manifests are printed"},
			{Name: "2", Text: "an error, or resource-manager cannot decode the manifests"},
		},
		Arguments:     wantsManagedResource,
		Complete:      to.completeManagedResource,
		CompleteFlags: to.completeFlags(outputOnly),
		Flags: func(set *pflag.FlagSet) {
			to.add(set)
			output.add(set)
		},
		Run: interruptible(func(ctx context.Context, set *pflag.FlagSet, out io.Writer) error {
			name, err := oneManagedResource(set.Args())
			if err != nil {
				return err
			}
			decoded, err := readManifests(ctx, &to, name)
			if err != nil {
				return err
			}
			if err := printManifests(out, output, decoded.Objects); err != nil || len(decoded.Errors) == 0 {
				return err
			}
			return errors.New(decode.ErrorsMessage(decoded.Errors))
		}),
	}
}

// readManifests decodes the Secrets of a ManagedResource of the source.
func readManifests(ctx context.Context, to *connection, name string) (decode.Result, error) {
	clusters, err := to.open(ctx)
	if err != nil {
		return decode.Result{}, err
	}
	r := runReader{clusters: clusters}
	mr, err := r.readOwner(ctx, clusters.namespace, name)
	switch {
	case err != nil:
		return decode.Result{}, err
	case mr == nil:
		return decode.Result{}, fmt.Errorf("ManagedResource %s/%s does not exist", clusters.namespace, name)
	}
	secrets, unread := clusters.source.secretsOf(ctx, mr)
	if len(unread) > 0 {
		return decode.Result{}, errors.New(strings.Join(unread, "; "))
	}
	return inspect.Decode(ctx, mr, secrets)
}

// printManifests prints objects as a stream of documents, or as a list. Values of Secrets are masked.
func printManifests(out io.Writer, f format, objects []decode.Object) error {
	if f == asWide {
		f = asYAML
	}
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		hidden := inspect.Masked(object.Unstructured)
		items = append(items, hidden.Object)
		switch f {
		case asYAML:
			if _, err := fmt.Fprintf(out, "---\n# %s\n", plaintext.Line(object.Place.String())); err != nil {
				return err
			}
			if err := encode(out, f, hidden.Object); err != nil {
				return err
			}
		case asName:
			gk := object.GroupVersionKind().GroupKind()
			if _, err := fmt.Fprintln(out, plaintext.Line(describeObject(gk, object.GetNamespace(), object.GetName()))); err != nil {
				return err
			}
		}
	}
	if f == asYAML || f == asName {
		return nil
	}
	return encode(out, f, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
