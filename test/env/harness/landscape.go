package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/deploy/crds"
	"github.com/espalier-project/espalier/test/env/cluster"
)

// Landscape is a seed and a shoot with clients for both.
type Landscape struct {
	Seed, Shoot             *cluster.Cluster
	SeedClient, ShootClient client.Client
	SeedREST, ShootREST     *rest.Config
}

// StartLandscape starts both clusters, side by side, and installs the CRD in the seed.
func StartLandscape(ctx context.Context, dir string, controllerManager bool, progress func(string)) (*Landscape, error) {
	return startLandscape(ctx, dir, progress, func() (*cluster.Cluster, error) {
		return cluster.Start(ctx, cluster.Options{Name: "shoot", Dir: filepath.Join(dir, "shoot"), ControllerManager: controllerManager, Progress: progress})
	})
}

// StartLandscapeWithAgents is StartLandscape with a shoot whose kube-apiserver asks about agents of nodes, and a seed with Machines.
func StartLandscapeWithAgents(ctx context.Context, dir string, progress func(string)) (*Landscape, *Agents, error) {
	var agents *Agents
	l, err := startLandscape(ctx, dir, progress, func() (c *cluster.Cluster, err error) {
		if agents, err = StartAgents(ctx, AgentOptions{Name: "shoot", Dir: filepath.Join(dir, "shoot"), ReviewVersion: "v1", ControllerManager: true, Progress: progress}, ""); err != nil {
			return nil, err
		}
		return agents.Cluster, nil
	})
	if err != nil {
		return nil, nil, err
	}
	if err := InstallMachines(ctx, l.SeedClient); err != nil {
		l.Stop()
		return nil, nil, err
	}
	return l, agents, nil
}

func startLandscape(ctx context.Context, dir string, progress func(string), startShoot func() (*cluster.Cluster, error)) (*Landscape, error) {
	l := &Landscape{}
	shootFailed := make(chan error, 1)
	go func() {
		var err error
		l.Shoot, err = startShoot()
		shootFailed <- err
	}()
	var err error
	l.Seed, err = cluster.Start(ctx, cluster.Options{Name: "seed", Dir: filepath.Join(dir, "seed"), Progress: progress})
	if err := errors.Join(<-shootFailed, err); err != nil {
		l.Stop()
		return nil, err
	}
	if l.SeedREST, l.SeedClient, err = clientFor(l.Seed); err != nil {
		l.Stop()
		return nil, err
	}
	if l.ShootREST, l.ShootClient, err = clientFor(l.Shoot); err != nil {
		l.Stop()
		return nil, err
	}
	if err := InstallCRD(ctx, l.SeedClient); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

// Stop ends both clusters.
func (l *Landscape) Stop() {
	for _, c := range []*cluster.Cluster{l.Seed, l.Shoot} {
		if c != nil {
			c.Stop()
		}
	}
}

// Scheme knows the kinds of Kubernetes and ManagedResources.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // Two of the same kind in one scheme: a mistake in this function.
		}
	}
	return scheme
}

func clientFor(c *cluster.Cluster) (*rest.Config, client.Client, error) {
	config, err := c.Admin()
	if err != nil {
		return nil, nil, err
	}
	config.WarningHandlerWithContext = rest.NoWarnings{}
	cl, err := client.New(config, client.Options{Scheme: Scheme()})
	return config, cl, err
}

// Root is the folder of the module.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	return strings.TrimSpace(string(out)), err
}

// InstallCRD installs the CRD of ManagedResources and waits until it is served.
func InstallCRD(ctx context.Context, cl client.Client) error {
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crds.ManagedResources, &crd.Object); err != nil {
		return err
	}
	if err := cl.Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return Poll(ctx, 30*time.Second, func() error {
		return cl.List(ctx, &resourcesv1alpha1.ManagedResourceList{})
	})
}

// Poll repeats a check until it succeeds, or returns its last error when the time is up.
func Poll(ctx context.Context, limit time.Duration, check func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Condition returns the condition of a ManagedResource as "<status>/<reason>", and its message.
func Condition(mr *resourcesv1alpha1.ManagedResource, conditionType resourcesv1alpha1.ConditionType) (string, string) {
	for _, c := range mr.Status.Conditions {
		if c.Type == conditionType {
			return string(c.Status) + "/" + c.Reason, c.Message
		}
	}
	return "", ""
}

// Settled reports whether a ManagedResource is applied, healthy and rolled out in its present generation.
func Settled(mr *resourcesv1alpha1.ManagedResource) error {
	if mr.Status.ObservedGeneration != mr.Generation {
		return fmt.Errorf("generation %d is not observed yet", mr.Generation)
	}
	for conditionType, want := range map[resourcesv1alpha1.ConditionType]string{
		resourcesv1alpha1.ResourcesApplied: "True/ApplySucceeded", resourcesv1alpha1.ResourcesHealthy: "True/ResourcesHealthy",
		resourcesv1alpha1.ResourcesProgressing: "False/ResourcesRolledOut",
	} {
		if got, message := Condition(mr, conditionType); got != want {
			return fmt.Errorf("%s is %s: %s", conditionType, got, message)
		}
	}
	return nil
}

// Object returns an object to read into.
func Object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// ManagedResource returns one that names Secrets.
func ManagedResource(namespace, name string, secrets ...string) *resourcesv1alpha1.ManagedResource {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	mr.Spec.SecretRefs = []corev1.LocalObjectReference{}
	for _, secret := range secrets {
		mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, corev1.LocalObjectReference{Name: secret})
	}
	return mr
}

// Secret returns one that holds manifests.
func Secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// Compress compresses with Brotli.
func Compress(plain []byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer := brotli.NewWriter(&buffer)
	if _, err := writer.Write(plain); err != nil {
		return nil, err
	}
	err := writer.Close()
	return buffer.Bytes(), err
}

// MergePatch is a JSON merge patch.
func MergePatch(patch any) client.Patch {
	content, err := json.Marshal(patch)
	if err != nil {
		panic(err) // Literals of tests only.
	}
	return client.RawPatch(types.MergePatchType, content)
}

// Dynamic returns a client that keeps what it reads as it is.
func Dynamic(config *rest.Config, resource schema.GroupVersionResource) (dynamic.NamespaceableResourceInterface, error) {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return c.Resource(resource), nil
}
