package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Usage is what the kernel says of a process.
type Usage struct {
	// RSS and Anonymous are its memory, in MiB; Peak is the most RSS that it had.
	RSS, Anonymous, Peak float64
	// CPU is its processor time, in seconds.
	CPU float64
}

// UsageOf reads the usage of a process.
func UsageOf(pid int) (Usage, error) {
	var u Usage
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			u.RSS = kib / 1024
		case "RssAnon:":
			u.Anonymous = kib / 1024
		case "VmHWM:":
			u.Peak = kib / 1024
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	// The fields after the name: utime and stime are the 12th and 13th, in hundredths of a second.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, i := range []int{11, 12} {
		ticks, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return u, err
		}
		u.CPU += ticks / 100
	}
	return u, nil
}
