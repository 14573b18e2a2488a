package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// checksums is the name of the file that sha256sum --check reads.
const checksums = "SHA256SUMS"

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// checksumsOf returns the checksums of the files of a folder that match patterns, by their paths with slashes.
func checksumsOf(dir string, patterns ...string) (map[string]string, error) {
	sums := map[string]string{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(dir, file)
			if err != nil {
				return nil, err
			}
			sums[filepath.ToSlash(name)] = fmt.Sprintf("%x", sha256.Sum256(content))
		}
	}
	return sums, nil
}

// writeChecksums writes the checksums of the files of a folder that match patterns into a file.
func writeChecksums(dir, file string, patterns ...string) error {
	sums, err := checksumsOf(dir, patterns...)
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	for _, name := range sorted(sums) {
		fmt.Fprintf(&lines, "%s  %s\n", sums[name], name)
	}
	return os.WriteFile(filepath.Join(dir, file), lines.Bytes(), 0o644)
}
