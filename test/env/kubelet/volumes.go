package kubelet

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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mount writes the files of all volumes that differ from what is there.
func (c *Container) Mount(ctx context.Context) error {
	for _, mount := range c.spec().VolumeMounts {
		i := slices.IndexFunc(c.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			return fmt.Errorf("there is no volume %s", mount.Name)
		}
		files, err := c.volume(ctx, &c.Spec.Volumes[i])
		if err == nil {
			err = c.Write(mount.MountPath, files)
		}
		if err != nil {
			return fmt.Errorf("MountVolume.SetUp failed for volume %q: %w", mount.Name, err)
		}
	}
	return nil
}

// Write puts files into a folder of the container, all at once and in place of older ones: a kubelet exchanges the link to a folder that
// has them.
func (c *Container) Write(path string, files map[string][]byte) error {
	dir := filepath.Join(c.Root, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	link := filepath.Join(dir, "..data")
	older, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	adapted := map[string][]byte{}
	for name, content := range files {
		if adapted[name], err = c.adapted(filepath.Join(path, name), content); err != nil {
			return err
		}
	}
	if len(files) == 0 && older == "" {
		return nil
	}
	present, err := read(link)
	if err != nil || older != "" && maps.EqualFunc(present, adapted, bytes.Equal) {
		return err
	}
	version, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return err
	}
	for name, content := range adapted {
		if err := os.WriteFile(filepath.Join(version, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := os.Symlink(filepath.Base(version), link+"_tmp"); err != nil {
		return err
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		return err
	}
	for name := range adapted {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for name := range present {
		if _, stays := adapted[name]; !stays {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	if older == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, older))
}

// read returns the files of a folder, none if there is no such folder.
func read(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, err
}

// volume returns the files of a volume.
func (c *Container) volume(ctx context.Context, v *corev1.Volume) (map[string][]byte, error) {
	sources := []corev1.VolumeProjection{{}}
	switch {
	case v.Secret != nil:
		sources[0].Secret = &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items, Optional: v.Secret.Optional}
	case v.ConfigMap != nil:
		sources[0].ConfigMap = &corev1.ConfigMapProjection{LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items}
	case v.Projected != nil:
		sources = v.Projected.Sources
	case v.EmptyDir != nil:
		sources = nil
	default:
		return nil, errors.New("there are only Secrets, ConfigMaps, tokens and empty folders here")
	}
	files := map[string][]byte{}
	for _, source := range sources {
		some, err := c.projection(ctx, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(files, some)
	}
	return files, nil
}

func (c *Container) projection(ctx context.Context, source corev1.VolumeProjection) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: c.Namespace}
	switch {
	case source.Secret != nil:
		secret := &corev1.Secret{}
		key.Name = source.Secret.Name
		if err := c.Client.Get(ctx, key, secret); apierrors.IsNotFound(err) && ptr.Deref(source.Secret.Optional, false) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		return items(secret.Data, source.Secret.Items)
	case source.ConfigMap != nil:
		configMap := &corev1.ConfigMap{}
		key.Name = source.ConfigMap.Name
		if err := c.Client.Get(ctx, key, configMap); err != nil {
			return nil, err
		}
		content := map[string][]byte{}
		for name, text := range configMap.Data {
			content[name] = []byte(text)
		}
		return items(content, source.ConfigMap.Items)
	case source.ServiceAccountToken != nil:
		token, err := c.Token(ctx, source.ServiceAccountToken)
		return map[string][]byte{source.ServiceAccountToken.Path: []byte(token)}, err
	case source.DownwardAPI != nil:
		files := map[string][]byte{}
		for _, item := range source.DownwardAPI.Items {
			if item.FieldRef == nil || item.FieldRef.FieldPath != "metadata.namespace" {
				return nil, errors.New("Pods are told only their namespace here")
			}
			files[item.Path] = []byte(c.Namespace)
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
