package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// child is a process that ends with this one.
type child struct {
	command *exec.Cmd
	ended   chan struct{}
}

// startChild starts a program of the control plane. The kernel ends it when the thread that started it ends, which is
// therefore kept: so nothing is left running even after a crash.
func startChild(program, logFile string, arguments ...string) (*child, error) {
	path, err := find(program)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.Command(path, arguments...), ended: make(chan struct{})}
	c.command.Stdout, c.command.Stderr = log, log
	c.command.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()
		err := c.command.Start()
		started <- err
		if err == nil {
			_ = c.command.Wait()
		}
		close(c.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return c, nil
}

func (c *child) stop() {
	if c == nil {
		return
	}
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
		return
	case <-time.After(5 * time.Second):
	}
	_ = c.command.Process.Kill()
	<-c.ended
}

// find looks for a program in KUBEBUILDER_ASSETS and where test/env/controlplane/build puts it.
func find(program string) (string, error) {
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if path := filepath.Join(assets, program); isFile(path) {
			return path, nil
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(cache, "espalier", "controlplane", "*", program))
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%s is not built: run make controlplane", program)
	}
	return found[len(found)-1], nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
