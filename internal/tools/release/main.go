// release builds the artifacts of a release, without a daemon and without a registry: OCI layouts with the image of
// each executable for several architectures and with its Helm chart, archives of the client, and their provenance.
// The same input gives the same digests.
//
//	release images -out bin/images -binaries bin -version v1.2.3 -commit 0123abc -time 1700000000 resource-manager …
//	release charts -out bin/charts -charts deploy/charts -version v1.2.3 -commit 0123abc -time 1700000000 resource-manager …
//	release client -out bin/client -binaries bin/clients -platforms linux/amd64 -version v1.2.3 -commit 0123abc -time 1700000000
//	release seal -out bin -key cosign.key -version v1.2.3 -commit 0123abc…
//	release overwrite -out bin -registry registry.example.com/espalier -version v1.2.3
//
// An image has nothing but the executable, its defaults, a user, an empty /tmp and the certificates of public authorities. The executables are
// expected at <binaries>/linux-<architecture>/<name>, the charts at <charts>/<name>.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// options are the inputs of a release.
type options struct {
	out             string
	version, commit string
	// time is the time of the commit. A release has no other time, so that it is the same whenever it is built.
	time time.Time

	binaries      string
	architectures []string
	// defaults is the content of /etc/espalier/defaults.yaml in the images.
	defaults []byte

	charts string
	client clientOptions

	// registry is where the images are pushed to.
	registry string

	// signer signs the release; nil means that it is not signed.
	signer *signer
}

// given are the values of flags that become options.
type given struct {
	seconds                          int64
	architectures, profile, defaults string
	key                              string
}

// commands are the subcommands, with the flags of each in addition to the common ones.
var commands = map[string]struct {
	flags func(*flag.FlagSet, *options, *given)
	run   func(*options, []string) error
}{
	"images":    {imageFlags, (*options).writeImages},
	"charts":    {chartFlags, (*options).writeCharts},
	"client":    {clientFlags, (*options).writeClient},
	"overwrite": {overwriteFlags, (*options).printOverwrite},
	"seal":      {sealFlags, (*options).seal},
}

func imageFlags(set *flag.FlagSet, o *options, g *given) {
	set.StringVar(&o.binaries, "binaries", "bin", "folder with linux-<architecture>/<executable>")
	contentFlags(set, g)
}

// contentFlags adds the flags for the content of images.
func contentFlags(set *flag.FlagSet, g *given) {
	set.StringVar(&g.architectures, "architectures", "amd64 arm64", "architectures to make images for, with spaces between")
	set.StringVar(&g.profile, "profile", "gardener", "profile that the images follow unless their configuration says otherwise")
	set.StringVar(&g.defaults, "defaults", "", "file that becomes /etc/espalier/defaults.yaml, in the place of one with the profile")
}

func chartFlags(set *flag.FlagSet, o *options, _ *given) {
	set.StringVar(&o.charts, "charts", "deploy/charts", "folder with <chart>/Chart.yaml")
}

func sealFlags(set *flag.FlagSet, _ *options, g *given) {
	contentFlags(set, g)
	set.StringVar(&g.key, "key", "", "private key that signs, as PEM; COSIGN_PASSWORD opens one of cosign's")
}

// defaultsOf returns the content of a defaults file, or of one that chooses a profile only.
func defaultsOf(path, profile string) ([]byte, error) {
	if path == "" {
		return fmt.Appendf(nil, "profile: %s\n", profile), nil
	}
	return os.ReadFile(path)
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]].run == nil {
		fmt.Fprintln(os.Stderr, "usage: release images|charts|client|seal|overwrite [flags] [names]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "release %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(name string, arguments []string) error {
	var o options
	var g given
	set := flag.NewFlagSet(name, flag.ExitOnError)
	set.StringVar(&o.out, "out", "", "folder to write to")
	set.StringVar(&o.version, "version", "", "version of the release")
	set.StringVar(&o.commit, "commit", "", "commit that it is made from")
	set.Int64Var(&g.seconds, "time", 0, "time of that commit, in seconds")
	commands[name].flags(set, &o, &g)
	if err := set.Parse(arguments); err != nil {
		return err
	}
	if err := checkVersion(o.version); err != nil {
		return err
	}
	content, err := defaultsOf(g.defaults, g.profile)
	if err != nil {
		return err
	}
	o.defaults, o.time, o.architectures = content, time.Unix(g.seconds, 0).UTC(), strings.Fields(g.architectures)
	if g.key != "" {
		if o.signer, err = readKey(g.key, os.Getenv("COSIGN_PASSWORD")); err != nil {
			return err
		}
	}
	return commands[name].run(&o, set.Args())
}

// writeImages writes the layouts of executables, and prints their digests.
func (o *options) writeImages(executables []string) error {
	for _, executable := range executables {
		digest, err := o.write(executable)
		if err != nil {
			return fmt.Errorf("%s: %w", executable, err)
		}
		fmt.Printf("%s:%s %s\n", filepath.Join(o.out, executable), o.version, digest)
	}
	return nil
}
