package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// serviceAccountDir is where client libraries look for the credentials of a Pod.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// paths replaces the paths of a container by those of this machine, longer ones first.
func (p *pod) paths() *strings.Replacer {
	mounts := slices.Clone(p.container().VolumeMounts)
	slices.SortFunc(mounts, func(x, y corev1.VolumeMount) int { return len(y.MountPath) - len(x.MountPath) })
	var replacements []string
	for _, mount := range mounts {
		replacements = append(replacements, mount.MountPath, filepath.Join(p.root(), mount.MountPath))
	}
	return strings.NewReplacer(replacements...)
}

// mount writes the files of all volumes that differ from what is there.
func (p *pod) mount(ctx context.Context) error {
	paths := p.paths()
	for _, mount := range p.container().VolumeMounts {
		i := slices.IndexFunc(p.object.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			return fmt.Errorf("there is no volume %s", mount.Name)
		}
		files, err := p.volume(ctx, &p.object.Spec.Volumes[i])
		if err != nil {
			return fmt.Errorf("MountVolume.SetUp failed for volume %q: %w", mount.Name, err)
		}
		dir := filepath.Join(p.root(), mount.MountPath)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for name, content := range files {
			path := filepath.Join(mount.MountPath, name)
			content, err := p.adapted(path, []byte(paths.Replace(string(content))))
			if err != nil {
				return err
			}
			if err := replace(filepath.Join(dir, name), content); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace writes a file at once, so that nobody reads half of it.
func replace(file string, content []byte) error {
	if present, err := os.ReadFile(file); err == nil && bytes.Equal(present, content) {
		return nil
	}
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// volume returns the files of a volume.
func (p *pod) volume(ctx context.Context, v *corev1.Volume) (map[string][]byte, error) {
	sources := []corev1.VolumeProjection{{}}
	switch {
	case v.Secret != nil:
		sources[0].Secret = &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items}
	case v.ConfigMap != nil:
		sources[0].ConfigMap = &corev1.ConfigMapProjection{LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items}
	case v.Projected != nil:
		sources = v.Projected.Sources
	case v.EmptyDir != nil:
		sources = nil
	default:
		return nil, fmt.Errorf("this node has only Secrets, ConfigMaps, tokens and empty folders")
	}
	files := map[string][]byte{}
	for _, source := range sources {
		some, err := p.projection(ctx, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(files, some)
	}
	return files, nil
}

func (p *pod) projection(ctx context.Context, source corev1.VolumeProjection) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: p.object.Namespace}
	switch {
	case source.Secret != nil:
		secret := &corev1.Secret{}
		key.Name = source.Secret.Name
		if err := p.node.client.Get(ctx, key, secret); err != nil {
			return nil, err
		}
		return items(secret.Data, source.Secret.Items)
	case source.ConfigMap != nil:
		configMap := &corev1.ConfigMap{}
		key.Name = source.ConfigMap.Name
		if err := p.node.client.Get(ctx, key, configMap); err != nil {
			return nil, err
		}
		content := map[string][]byte{}
		for name, text := range configMap.Data {
			content[name] = []byte(text)
		}
		return items(content, source.ConfigMap.Items)
	case source.ServiceAccountToken != nil:
		text, err := p.issue(ctx, source.ServiceAccountToken)
		return map[string][]byte{source.ServiceAccountToken.Path: []byte(text)}, err
	case source.DownwardAPI != nil:
		files := map[string][]byte{}
		for _, item := range source.DownwardAPI.Items {
			if item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.namespace" {
				return nil, fmt.Errorf("this node tells Pods only their namespace")
			}
			files[item.Path] = []byte(p.object.Namespace)
		}
		return files, nil
	}
	return nil, nil
}

func items(content map[string][]byte, chosen []corev1.KeyToPath) (map[string][]byte, error) {
	if len(chosen) == 0 {
		return content, nil
	}
	files := map[string][]byte{}
	for _, item := range chosen {
		value, found := content[item.Key]
		if !found {
			return nil, fmt.Errorf("references non-existent key: %s", item.Key)
		}
		files[item.Path] = value
	}
	return files, nil
}

// token is one of the Pod's ServiceAccount.
type token struct {
	text  string
	renew time.Time
}

// issue returns a token, a new one when half the life of the last is over.
func (p *pod) issue(ctx context.Context, wanted *corev1.ServiceAccountTokenProjection) (string, error) {
	if p.token.text != "" && time.Now().Before(p.token.renew) {
		return p.token.text, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: wanted.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.object.Name, UID: p.object.UID},
	}}
	if wanted.Audience != "" {
		request.Spec.Audiences = []string{wanted.Audience}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.object.Namespace, Name: p.object.Spec.ServiceAccountName}}
	if err := p.node.client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	p.token = token{text: request.Status.Token, renew: time.Now().Add(time.Until(request.Status.ExpirationTimestamp.Time) / 2)}
	return p.token.text, nil
}

// adapted is a file of a volume as the process finds it: the configuration, which --config names, lets it listen on the Pod's address only, as
// there is one network for all Pods. What cannot be parsed stays as it is, so that the process says what is wrong with it.
func (p *pod) adapted(path string, content []byte) ([]byte, error) {
	if !slices.Contains(p.container().Args, "--config="+path) {
		return content, nil
	}
	config := map[string]any{}
	servers, ok := map[string]any(nil), yaml.Unmarshal(content, &config) == nil
	if ok {
		servers, ok = config["server"].(map[string]any)
	}
	if !ok {
		return content, nil
	}
	for _, name := range []string{"webhooks", "healthProbes", "metrics"} {
		if server, ok := servers[name].(map[string]any); ok {
			server["bindAddress"] = p.loopback()
		}
	}
	return yaml.Marshal(config)
}

// command returns the arguments and the environment of the process. What client libraries take from the ServiceAccount's folder, it takes from
// a kubeconfig, for the connections of the configuration that name none: the folder's path is the same for all Pods.
func (p *pod) command() (arguments, environment []string, err error) {
	paths := p.paths()
	environment = []string{"TMPDIR=" + p.dir}
	for _, variable := range p.container().Env {
		environment = append(environment, variable.Name+"="+paths.Replace(variable.Value))
	}
	config := map[string]any{}
	for _, argument := range p.container().Args {
		arguments = append(arguments, paths.Replace(argument))
		if file, isConfig := strings.CutPrefix(argument, "--config="); isConfig {
			content, err := os.ReadFile(filepath.Join(p.root(), file))
			if err != nil {
				return nil, nil, err
			}
			_ = yaml.Unmarshal(content, &config) // The process says what is wrong with it.
		}
	}
	own, err := p.inCluster()
	if err != nil || own == "" {
		return arguments, environment, err
	}
	variables := map[string]string{"sourceClientConnection": "KUBECONFIG", "targetClientConnection": "TARGET_KUBECONFIG"}
	if config["kind"] == "AdmissionControllerConfiguration" {
		variables = map[string]string{"gardenClientConnection": "KUBECONFIG"}
	}
	for connection, variable := range variables {
		section, _ := config[connection].(map[string]any)
		if path, _ := section["kubeconfig"].(string); path == "" {
			environment = append(environment, variable+"="+own)
		}
	}
	return arguments, environment, nil
}

// inCluster writes a kubeconfig that says what is in the ServiceAccount's folder; empty if that is not mounted.
func (p *pod) inCluster() (string, error) {
	dir := filepath.Join(p.root(), serviceAccountDir)
	if _, err := os.Stat(filepath.Join(dir, "token")); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	file := filepath.Join(p.dir, "in-cluster-kubeconfig")
	return file, os.WriteFile(file, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: '%s', certificate-authority: %s/ca.crt}}]\nusers: [{name: u, user: {tokenFile: %s/token}}]\n", p.node.cluster.URL(), dir, dir), 0o600)
}
