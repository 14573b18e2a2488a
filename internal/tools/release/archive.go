package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"
)

// file is a file of an archive. A name that ends in a slash is a folder's.
type file struct {
	name    string
	mode    int64
	content []byte
}

// plainFiles returns files below a folder, in the order of their names.
func plainFiles(dir string, contents map[string][]byte) []file {
	var files []file
	for _, name := range sorted(contents) {
		files = append(files, file{name: dir + name, mode: 0o644, content: contents[name]})
	}
	return files
}

// writeTar writes an archive. It depends only on the files and the time.
func writeTar(to io.Writer, files []file, modified time.Time) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg, ModTime: modified, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	return w.Close()
}

// tarGzip returns a compressed archive.
func tarGzip(files []file, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	err = errors.Join(writeTar(compressed, files, modified), compressed.Close())
	return packed.Bytes(), err
}

// zipped returns an archive for windows.
func zipped(files []file, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(fs.FileMode(f.mode))
		to, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return packed.Bytes(), err
}
