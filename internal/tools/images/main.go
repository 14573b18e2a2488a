// images writes an OCI layout with the image of an executable for several architectures: nothing but the executable, a user, an empty /tmp and
// the certificates of public authorities. No daemon and no registry is needed, and the same input gives the same digests.
//
//	images -binaries bin -out bin/images -version v1.2.3 -commit 0123abc -time 1700000000 resource-manager …
//
// The executables are expected at <binaries>/linux-<architecture>/<name>.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// architectures are those that images are made for.
var architectures = []string{"amd64", "arm64"}

// options say what goes into images.
type options struct {
	binaries, out   string
	version, commit string
	// time is that of the commit: images tell no other, so that they are the same whenever they are made.
	time          time.Time
	architectures []string
}

func main() {
	var o options
	var seconds int64
	var chosen string
	flag.StringVar(&o.binaries, "binaries", "bin", "folder with linux-<architecture>/<executable>")
	flag.StringVar(&o.out, "out", "bin/images", "folder for the layouts, one an executable")
	flag.StringVar(&o.version, "version", "", "version of the executables")
	flag.StringVar(&o.commit, "commit", "", "commit that they were built from")
	flag.Int64Var(&seconds, "time", 0, "time of that commit, in seconds")
	flag.StringVar(&chosen, "architectures", strings.Join(architectures, ","), "architectures to make images for")
	flag.Parse()
	o.time, o.architectures = time.Unix(seconds, 0).UTC(), strings.Split(chosen, ",")
	for _, executable := range flag.Args() {
		digest, err := o.write(executable)
		if err != nil {
			fmt.Fprintf(os.Stderr, "images: %s: %v\n", executable, err)
			os.Exit(1)
		}
		fmt.Printf("%s %s\n", filepath.Join(o.out, executable), digest)
	}
}
