package cluster

import "syscall"

func dieWithParent() *syscall.SysProcAttr {
	// A group of its own keeps Ctrl-C of the terminal away: the parent ends its children in order.
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
