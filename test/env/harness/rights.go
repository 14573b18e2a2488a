package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/test/env/cluster"
)

// grantLimit is the time that it may take to give rights: API servers answer at once, or are away on purpose.
const grantLimit = 20 * time.Second

// Grant gives a user of a cluster exactly the rights that an executable prints for its configuration, and returns a kubeconfig of that user.
// The arguments are those that the executable is started with.
func Grant(binary, dir string, c *cluster.Cluster, name, user string, arguments ...string) (string, error) {
	printed, err := Printed(binary, append([]string{"rights", "--cluster=" + name, "--service-account=" + user}, arguments...)...)
	if err != nil {
		return "", err
	}
	cfg, err := c.Admin()
	if err != nil {
		return "", err
	}
	admin, err := client.New(cfg, client.Options{})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), grantLimit)
	defer cancel()
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(printed), 4096); ; {
		role := &unstructured.Unstructured{}
		if err := documents.Decode(&role.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", err
		}
		// Several processes of a test work in one cluster, each with rights of its own.
		role.SetName(role.GetName() + ":" + user)
		if reference, found, _ := unstructured.NestedStringMap(role.Object, "roleRef"); found {
			reference["name"] = role.GetName()
			if err := unstructured.SetNestedStringMap(role.Object, reference, "roleRef"); err != nil {
				return "", err
			}
		}
		if namespace := role.GetNamespace(); namespace != "" {
			there := Object("v1", "Namespace", "", namespace)
			if err := admin.Create(ctx, there); err != nil && !apierrors.IsAlreadyExists(err) {
				return "", err
			}
		}
		if err := admin.Create(ctx, role); err != nil {
			return "", err
		}
	}
	if err := note(binary, c, name, user, arguments); err != nil {
		return "", err
	}
	kubeconfig := filepath.Join(dir, name+"-kubeconfig")
	return kubeconfig, c.WriteKubeconfig(kubeconfig, user, cluster.AuditedGroup)
}

// Granted is who got the rights of which executable, under which configuration, in which of its clusters.
type Granted struct {
	User, Executable, Cluster string
	Config                    []byte
}

// GrantedFiles are the files with a Granted each, in the folder of a cluster's requests.
const GrantedFiles = "granted-*.json"

// note writes down who got rights, beside the requests that show which of them are used.
func note(binary string, c *cluster.Cluster, name, user string, arguments []string) error {
	if c.Requests == "" {
		return nil
	}
	granted := Granted{User: user, Executable: filepath.Base(binary), Cluster: name}
	for _, argument := range arguments {
		if file, found := strings.CutPrefix(argument, "--config="); found {
			var err error
			if granted.Config, err = os.ReadFile(file); err != nil {
				return err
			}
		}
	}
	content, err := json.Marshal(granted)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Requests, strings.ReplaceAll(GrantedFiles, "*", name+"-"+user)), content, 0o600)
}

// Printed returns what a command of an executable prints.
func Printed(binary string, arguments ...string) ([]byte, error) {
	command := exec.Command(binary, arguments...)
	var failed bytes.Buffer
	command.Stderr = &failed
	printed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(binary), arguments[0], err, failed.String())
	}
	return printed, nil
}
