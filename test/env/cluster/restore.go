package cluster

import (
	"context"
	"os"
	"path/filepath"
)

// Backup keeps a copy of etcd's data and returns a function that puts it back, as a restore from a backup does: revisions count on from there.
// kube-apiserver and etcd are down for either.
func (c *Cluster) Backup(ctx context.Context) (restore func(context.Context) error, err error) {
	data, kept := filepath.Join(c.Dir, "etcd"), filepath.Join(c.Dir, "etcd-backup")
	exchange := func(ctx context.Context, from, to string) error {
		c.StopAPIServer()
		c.etcd.stop()
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			return err
		}
		if err := os.Chmod(to, 0o700); err != nil { // As etcd wants it.
			return err
		}
		if err := c.startEtcd(c.etcdPorts[0], c.etcdPorts[1]); err != nil {
			return err
		}
		return c.StartAPIServer(ctx)
	}
	if err := exchange(ctx, data, kept); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return exchange(ctx, kept, data) }, nil
}
