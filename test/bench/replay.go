package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/espalier-project/espalier/test/auditgen"
	"github.com/espalier-project/espalier/test/landscape"
)

// replayedEvents is the number of requests of the log, beside the writes that make its garden.
const replayedEvents = 1_000_000

// replayLog measures the verb replay as a process, with a log of a million events and two rule sets.
func replayLog(ctx context.Context, b *bench) error {
	path := filepath.Join(b.dir, "audit.log")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	log := auditgen.New(file)
	if err := log.Landscape(landscape.Options{Seeds: 20, Projects: 100, Shoots: 1000}, replayedEvents); err != nil {
		return err
	}
	if err := log.Flush(); err != nil {
		return err
	}
	size, err := file.Seek(0, 2)
	if err != nil {
		return err
	}
	_ = file.Close()
	narrow := filepath.Join(b.dir, "narrow.yaml")
	if err := os.WriteFile(narrow, []byte("server: {seedAuthorizer: {readScope: Related, writeScope: Owned}}\n"), 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(filepath.Dir(b.binary), "admission-controller"), "replay", "--audit-log", path, "--compare", narrow)
	started := time.Now()
	out, err := command.CombinedOutput()
	took := time.Since(started)
	if code := command.ProcessState.ExitCode(); code != 0 && code != 1 {
		return fmt.Errorf("replay ended with %d: %w: %s", code, err, out)
	}
	cpu := (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	usage, _ := command.ProcessState.SysUsage().(*syscall.Rusage)
	b.add(fmt.Sprintf("replay of %d events, two rule sets", log.Lines()), took.Seconds(), "s", fmt.Sprintf("%.1f s CPU time, %d MB", cpu, size/1_000_000), "target ≤ 10")
	b.add("… resident memory at most", float64(usage.Maxrss)/1024, "MiB", "", "target ≤ 150")
	return nil
}
