package kubectl

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/process"
)

// creation has the arguments of create.
type creation struct {
	name, namespace, class, dryRun string
	files                          []string
	output                         format
}

// createVerb is the verb that prints a ManagedResource with a Secret for manifests.
func createVerb() process.Subcommand {
	asked := creation{output: asYAML}
	return process.Subcommand{
		Name: "create", Operand: "NAME", Fault: faultCode,
		Short: "Print a ManagedResource and an immutable Secret that apply the manifests of files",
		Long: "It sends nothing to a cluster: kubectl apply -f - takes the output.\n" +
			"The manifests must be within the limits of resource-manager, and stay as they are.\n" +
			"The Secret's name ends with a checksum; the garbage collector deletes the Secret once the ManagedResource names another one.",
		Codes:         []process.Term{{Name: "0", Text: "both are printed"}, {Name: "2", Text: "an error; nothing is printed"}},
		Arguments:     wantsManagedResource,
		CompleteFlags: map[string]func(*pflag.FlagSet, string) []string{"output": completeOutput},
		Complete:      func(*pflag.FlagSet, []string, string) []string { return nil },
		Flags: func(set *pflag.FlagSet) {
			set.StringArrayVarP(&asked.files, "filename", "f", nil, "`file` with manifests, or folder with files *.yaml, *.yml and *.json; may be repeated")
			set.StringVarP(&asked.namespace, "namespace", "n", "", "`namespace` of both; default: that of kubectl apply")
			set.StringVar(&asked.class, "class", "", "`class` of the ManagedResource")
			set.StringVar(&asked.dryRun, "dry-run", "", "required: must be `client`")
			asked.output.add(set)
		},
		Run: func(set *pflag.FlagSet, out io.Writer) error {
			if asked.dryRun != "client" {
				return process.CommandLineError(errors.New("create writes to no cluster: add --dry-run=client, and pipe the output into kubectl apply -f -"))
			}
			if len(asked.files) == 0 {
				return process.CommandLineError(errors.New("want --filename"))
			}
			var err error
			if asked.name, err = oneManagedResource(set.Args()); err != nil {
				return err
			}
			return asked.print(out)
		},
	}
}

func (c *creation) print(out io.Writer) error {
	data, err := c.read()
	if err != nil {
		return err
	}
	secret := c.name + "-" + checksum(data)
	if wrong := validation.IsDNS1123Subdomain(secret); len(wrong) > 0 {
		return fmt.Errorf("%s is no name of a ManagedResource and its Secret: %s", c.name, strings.Join(wrong, "; "))
	}
	decoded, err := decode.Decode(context.Background(), []decode.Source{{Secret: types.NamespacedName{Namespace: c.namespace, Name: secret}, Data: data}})
	switch {
	case err != nil:
		return err
	case len(decoded.Errors) > 0:
		return errors.New(decode.ErrorsMessage(decoded.Errors))
	case len(decoded.Objects) == 0:
		return errors.New("the files have no manifest")
	}
	objects := c.objects(secret, data)
	switch {
	case c.output == asName:
		_, err := fmt.Fprintf(out, "secret/%s\nmanagedresource.resources.gardener.cloud/%s\n", secret, c.name)
		return err
	case c.output != asYAML && c.output.structured():
		return encode(out, c.output, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	for _, object := range objects {
		if _, err := io.WriteString(out, "---\n"); err != nil {
			return err
		}
		if err := encode(out, asYAML, object); err != nil {
			return err
		}
	}
	return nil
}

// objects returns the Secret, whose values are Base64 so that no writer changes them, and the ManagedResource.
func (c *creation) objects(secret string, data map[string][]byte) []any {
	metadata := func(name string) map[string]any {
		m := map[string]any{"name": name}
		if c.namespace != "" {
			m["namespace"] = c.namespace
		}
		return m
	}
	encoded := map[string]string{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	ofSecret, ofOwner := metadata(secret), metadata(c.name)
	ofSecret["labels"] = map[string]string{resourcesv1alpha1.LabelGarbageCollectableReference: "true"}
	of := references.Reference{Kind: references.Secret, Name: secret}
	ofOwner["annotations"] = map[string]string{of.AnnotationKey(): secret}
	spec := map[string]any{"secretRefs": []any{map[string]any{"name": secret}}}
	if c.class != "" {
		spec["class"] = c.class
	}
	return []any{
		map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": ofSecret, "type": "Opaque", "immutable": true, "data": encoded},
		map[string]any{"apiVersion": resourcesv1alpha1.SchemeGroupVersion.String(), "kind": "ManagedResource", "metadata": ofOwner, "spec": spec},
	}
}

// checksum depends on keys and values.
func checksum(data map[string][]byte) string {
	sum := sha256.New()
	for _, key := range sortedKeys(data) {
		_, _ = fmt.Fprintf(sum, "%q %d\n", key, len(data[key]))
		_, _ = sum.Write(data[key])
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}

// read reads the files, whose names are the keys of the Secret.
func (c *creation) read() (map[string][]byte, error) {
	data := map[string][]byte{}
	left := int64(corev1.MaxSecretSize)
	for _, path := range c.files {
		files, err := manifestFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			key := filepath.Base(file)
			if _, twice := data[key]; twice {
				return nil, fmt.Errorf("two files have the name %s, which is the key in the Secret", key)
			}
			if texts := validation.IsConfigMapKey(key); len(texts) > 0 {
				return nil, fmt.Errorf("%s cannot be a key of a Secret: %s", file, strings.Join(texts, "; "))
			}
			if data[key], err = readBounded(file, left); err != nil {
				return nil, err
			}
			left -= int64(len(data[key]))
		}
	}
	return data, nil
}

func readBounded(file string, most int64) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	content, err := io.ReadAll(io.LimitReader(opened, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("the files have more than %d MiB, which is all that a Secret takes: make several ManagedResources of them", corev1.MaxSecretSize>>20)
	}
	return content, err
}

// manifestFiles returns a file, or the files of a folder that have manifests by their names, without those of folders in it.
func manifestFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("folder %s has no file *.yaml, *.yml or *.json", path)
	}
	return files, nil
}
