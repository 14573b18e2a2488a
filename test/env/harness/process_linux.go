package harness

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieTogether makes the kernel end the child when the calling goroutine's thread ends, which is kept until unlock.
func dieTogether(command *exec.Cmd) (unlock func()) {
	runtime.LockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return runtime.UnlockOSThread
}
