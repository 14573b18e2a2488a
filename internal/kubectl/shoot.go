package kubectl

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/internal/process"
)

const (
	gardenNamespace = "garden"
	// issuedSeconds is the validity of an issued kubeconfig: the shortest that Gardener issues.
	issuedSeconds int64 = 600
)

var (
	gardenerCore = schema.GroupVersion{Group: "core.gardener.cloud", Version: "v1beta1"}
	shoots       = gardenerCore.WithResource("shoots")
	projects     = gardenerCore.WithResource("projects")
	managedSeeds = schema.GroupVersionResource{Group: "seedmanagement.gardener.cloud", Version: "v1alpha1", Resource: "managedseeds"}
)

type garden struct {
	dynamic.Interface
	config *rest.Config
}

// openShoot makes the Shoot the target, and the Seed that hosts its control plane the source (CLI-63).
func (c *connection) openShoot(ctx context.Context) error {
	project, name, ok := strings.Cut(c.shoot, "/")
	if !ok || project == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("want <project>/<name>, not %q", c.shoot)
	}
	if c.hasTarget() {
		return errors.New("not with a flag of the target: the Shoot is the target")
	}
	config, _, err := c.source.load()
	if err != nil {
		return fmt.Errorf("garden: %w", err)
	}
	g := &garden{config: config}
	if g.Interface, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("garden: %w", err)
	}
	namespace, err := g.field(ctx, projects, "", project, "spec", "namespace")
	if err != nil {
		return err
	}
	technicalID, err := g.field(ctx, shoots, namespace, name, "status", "technicalID")
	if err != nil {
		return err
	}
	seed, err := g.field(ctx, shoots, namespace, name, "status", "seedName")
	if err != nil {
		return err
	}
	host, err := g.field(ctx, managedSeeds, gardenNamespace, seed, "spec", "shoot", "name")
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the Seed %s is no ManagedSeed, so that the garden issues no kubeconfig for it: give that of the seed with --kubeconfig, that of the shoot with --target-kubeconfig, and --namespace %s", seed, technicalID)
	}
	if err != nil {
		return err
	}
	target, err := g.issue(ctx, namespace, name)
	if err != nil {
		return err
	}
	source, err := g.issue(ctx, gardenNamespace, host)
	if err != nil {
		return err
	}
	within := cmp.Or(c.source.Context.Namespace, technicalID)
	c.source.issued, c.source.namespace = source, within
	c.target.issued, c.target.namespace = target, within
	return nil
}

// field reads a string of an object.
func (g *garden) field(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, path ...string) (string, error) {
	object, err := g.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("garden: %w", err)
	}
	value, _, err := unstructured.NestedString(object.Object, path...)
	if err == nil && value == "" {
		err = errors.New("not set yet")
	}
	if err != nil {
		return "", fmt.Errorf("garden: %s %s: %s: %w", object.GetKind(), name, strings.Join(path, "."), err)
	}
	return value, nil
}

// issue requests a kubeconfig for an administrator of a Shoot.
func (g *garden) issue(ctx context.Context, namespace, name string) (*rest.Config, error) {
	request := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"expirationSeconds": issuedSeconds}}}
	request.SetAPIVersion("authentication.gardener.cloud/v1alpha1")
	request.SetKind("AdminKubeconfigRequest")
	request.SetName(name)
	issued, err := g.Resource(shoots).Namespace(namespace).Create(ctx, request, metav1.CreateOptions{}, "adminkubeconfig")
	if err != nil {
		return nil, fmt.Errorf("garden: kubeconfig of Shoot %s/%s: %w", namespace, name, err)
	}
	text, _, _ := unstructured.NestedString(issued.Object, "status", "kubeconfig")
	kubeconfig, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("garden: kubeconfig of Shoot %s/%s: it is not in base64", namespace, name)
	}
	config, err := process.Kubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("garden: kubeconfig of Shoot %s/%s: %w", namespace, name, err)
	}
	config.Timeout, config.WarningHandler = g.config.Timeout, g.config.WarningHandler
	return config, nil
}
