// images writes an OCI layout with the image of an executable for several architectures: nothing but the executable, its defaults, a user, an
// empty /tmp and the certificates of public authorities. No daemon and no registry is needed, and the same input gives the same digests.
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
	// defaults is what /etc/espalier/defaults.yaml says in the images.
	defaults []byte
}

// defaultsOf returns the content of a defaults file, or of one that chooses a profile only.
func defaultsOf(path, profile string) ([]byte, error) {
	if path == "" {
		return fmt.Appendf(nil, "profile: %s\n", profile), nil
	}
	return os.ReadFile(path)
}

func main() {
	var o options
	var seconds int64
	var chosen, profile, defaults string
	flag.StringVar(&o.binaries, "binaries", "bin", "folder with linux-<architecture>/<executable>")
	flag.StringVar(&o.out, "out", "bin/images", "folder for the layouts, one an executable")
	flag.StringVar(&o.version, "version", "", "version of the executables")
	flag.StringVar(&o.commit, "commit", "", "commit that they were built from")
	flag.Int64Var(&seconds, "time", 0, "time of that commit, in seconds")
	flag.StringVar(&chosen, "architectures", strings.Join(architectures, ","), "architectures to make images for")
	flag.StringVar(&profile, "profile", "gardener", "profile that the images follow unless their configuration says otherwise")
	flag.StringVar(&defaults, "defaults", "", "file that becomes /etc/espalier/defaults.yaml, in the place of one with the profile")
	flag.Parse()
	content, err := defaultsOf(defaults, profile)
	if err != nil {
		fmt.Fprintf(os.Stderr, "images: %v\n", err)
		os.Exit(1)
	}
	o.defaults = content
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
