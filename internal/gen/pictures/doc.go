// Package pictures draws the pictures of the documents as SVG: sequences from the steps in ways.go (a manifest, drift, a deletion, a change
// of leader, a review), and the kinds of the graphs from the tables of edges.
//
// The style is the one of docs/landscape.svg, with colors for dark mode. A page is wide enough for each text in the widest of the fonts
// that browsers may take, so that no text leaves its box. The package has no clock and no randomness: the same tables give the same bytes.
package pictures

import (
	"os"
	"path/filepath"
)

// Files are the contents of all pictures, by their file names in docs/pictures.
func Files() map[string]string {
	files := kindPictures()
	for _, w := range ways {
		files[w.File] = w.draw()
	}
	return files
}

// Write writes all pictures into a folder.
func Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range Files() {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
