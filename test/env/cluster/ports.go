package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Ports are taken from below those that the kernel gives to connections (32768 by default): one of these may be taken by somebody's
// connection between the moment at which it was found free and that at which a server listens there.
const firstPort, lastPort = 10_000, 32_000

// taken are the ports that FreePorts returned. Invariant: this process holds a lock on the byte of each in a file that all processes
// share, until it ends, so that no two of them are given the same.
var taken struct {
	sync.Mutex
	file  *os.File
	ports map[int]bool
}

// FreePorts returns ports on which nobody listens, and which no other test is given as long as this process lives.
func FreePorts(n int) ([]int, error) {
	taken.Lock()
	defer taken.Unlock()
	if taken.file == nil {
		file, err := os.OpenFile(filepath.Join(os.TempDir(), "espalier-ports"), os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		taken.file, taken.ports = file, map[int]bool{}
	}
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries > lastPort-firstPort {
			return nil, errors.New("no free ports were found")
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if taken.ports[port] || !isFree(port) {
			continue
		}
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: int64(port), Len: 1}
		if syscall.FcntlFlock(taken.file.Fd(), syscall.F_SETLK, &lock) != nil {
			continue // Another process has it.
		}
		taken.ports[port] = true
		ports = append(ports, port)
	}
	return ports, nil
}

func isFree(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			return false
		}
		_ = listener.Close()
	}
	return true
}
