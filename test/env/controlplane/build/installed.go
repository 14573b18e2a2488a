package main

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// linkInstalled links the programs of an installed envtest into a folder, and returns those that it does not have. Envtest
// has no kube-controller-manager.
func linkInstalled(folder string, v versions, programs []string) (missing []string) {
	assets := installed(v)
	if assets == "" {
		return programs
	}
	for _, name := range programs {
		path := filepath.Join(assets, name)
		if !isProgram(path) || link(path, filepath.Join(folder, name)) != nil {
			missing = append(missing, name)
			continue
		}
		say("using %s of the installed envtest %s", name, filepath.Base(assets))
	}
	return missing
}

// installed returns the folder of the newest envtest of the same minor version that setup-envtest installed, or nothing.
func installed(v versions) string {
	data := os.Getenv("XDG_DATA_HOME")
	if home, err := os.UserHomeDir(); err == nil && data == "" {
		data = filepath.Join(home, ".local", "share")
	}
	minor := strings.TrimPrefix(v.kubernetes[:strings.LastIndex(v.kubernetes, ".")+1], "v")
	found, _ := filepath.Glob(filepath.Join(data, "kubebuilder-envtest", "k8s", minor+"*-"+runtime.GOOS+"-"+runtime.GOARCH))
	if len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
}

// link replaces a link, also one whose file is gone.
func link(to, path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(to, path)
}
