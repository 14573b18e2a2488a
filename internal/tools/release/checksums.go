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

// writeChecksums writes those of the files of a folder that match patterns.
func writeChecksums(dir string, patterns ...string) error {
	var lines bytes.Buffer
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, file)
			if err != nil {
				return err
			}
			fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		}
	}
	return os.WriteFile(filepath.Join(dir, checksums), lines.Bytes(), 0o644)
}
