package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// downloadsVariable names a server that has the official releases under the same paths; "off" downloads nothing.
	downloadsVariable = "ESPALIER_DOWNLOADS"
	// A machine without access to the internet loses at most connectTimeout.
	connectTimeout  = time.Second
	checksumTimeout = 3 * time.Second
	downloadTimeout = 3 * time.Minute
	// mostBytes is several times the largest of the programs.
	mostBytes = 1 << 30
)

// release is an official file of a program, with the checksum that is published next to it.
type release struct {
	program, url, checksums string
	// member is the program's path in the archive at url; empty means that url is the program.
	member string
}

// releaseOf returns the release of a program for this machine. Kubernetes releases server programs for Linux only.
func releaseOf(program string, v versions) release {
	kubernetes, github := "https://dl.k8s.io", "https://github.com"
	if base := os.Getenv(downloadsVariable); base != "" {
		kubernetes, github = base, base
	}
	if program != etcd {
		url := fmt.Sprintf("%s/release/%s/bin/linux/%s/%s", kubernetes, v.kubernetes, runtime.GOARCH, program)
		return release{program: program, url: url, checksums: url + ".sha256"}
	}
	folder := fmt.Sprintf("%s/etcd-io/etcd/releases/download/%s", github, v.etcd)
	name := fmt.Sprintf("etcd-%s-linux-%s", v.etcd, runtime.GOARCH)
	return release{program: program, url: folder + "/" + name + ".tar.gz", checksums: folder + "/SHA256SUMS", member: name + "/etcd"}
}

// download downloads programs from their official releases into a folder, and returns those that it could not get. The first
// failure ends the other downloads, as one program takes almost as long to build as all of them.
func download(ctx context.Context, folder string, v versions, programs []string) (missing []string) {
	if runtime.GOOS != "linux" || os.Getenv(downloadsVariable) == "off" {
		return programs
	}
	ctx, cancel := context.WithTimeoutCause(ctx, downloadTimeout, fmt.Errorf("it takes longer than %s", downloadTimeout))
	defer cancel()
	d := downloader{client: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: connectTimeout}).DialContext,
		ResponseHeaderTimeout: checksumTimeout,
	}}}
	started := time.Now()
	stop := every(10*time.Second, func() {
		say("      still downloading after %s, %d MB", time.Since(started).Round(time.Second), d.received.Load()>>20)
	})
	defer stop()
	failed := make([]error, len(programs))
	var running sync.WaitGroup
	for i, program := range programs {
		running.Go(func() {
			if failed[i] = d.install(ctx, releaseOf(program, v), filepath.Join(folder, program)); failed[i] != nil {
				cancel()
			}
		})
	}
	running.Wait()
	for i, program := range programs {
		switch {
		case failed[i] == nil:
			say("downloaded %s in %s, with the right checksum", releaseOf(program, v).url, time.Since(started).Round(100*time.Millisecond))
		case !errors.Is(failed[i], context.Canceled):
			say("no download of %s: %v", program, failed[i])
			fallthrough
		default:
			missing = append(missing, program)
		}
	}
	return missing
}

type downloader struct {
	client   *http.Client
	received atomic.Int64
}

// install downloads a program to a temporary name, and gives it its own if the checksum is right.
func (d *downloader) install(ctx context.Context, r release, binary string) error {
	want, err := d.checksum(ctx, r)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(binary), filepath.Base(binary)+".download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	err = d.get(ctx, r.url, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		return err
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != want {
		return fmt.Errorf("%s has the checksum %x, want %s", r.url, got, want)
	}
	if r.member != "" {
		if content, err = unpack(content, r.member); err != nil {
			return fmt.Errorf("%s: %w", r.url, err)
		}
	}
	if err := os.WriteFile(file.Name(), content, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(file.Name(), 0o755); err != nil {
		return err
	}
	return os.Rename(file.Name(), binary)
}

// checksum reads the published checksum: the whole file, or the word before the name of the archive.
func (d *downloader) checksum(ctx context.Context, r release) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checksumTimeout, fmt.Errorf("%s does not answer in %s", r.checksums, checksumTimeout))
	defer cancel()
	var sums bytes.Buffer
	if err := d.get(ctx, r.checksums, &sums); err != nil {
		return "", err
	}
	for line := range strings.Lines(sums.String()) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(fields[0]) != hex.EncodedLen(sha256.Size) {
			continue
		}
		if len(fields) == 1 || strings.TrimPrefix(fields[1], "*") == path.Base(r.url) {
			return fields[0], nil
		}
	}
	return "", fmt.Errorf("%s has no checksum of %s", r.checksums, path.Base(r.url))
}

func (d *downloader) get(ctx context.Context, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return d.why(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	if _, err := io.Copy(to, io.TeeReader(io.LimitReader(response.Body, mostBytes), d)); err != nil {
		return fmt.Errorf("%s: %w", url, d.why(ctx, err))
	}
	return nil
}

// why prefers the reason of a deadline to its name.
func (d *downloader) why(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Write counts what arrives.
func (d *downloader) Write(p []byte) (int, error) {
	d.received.Add(int64(len(p)))
	return len(p), nil
}

// unpack returns a file of a compressed archive.
func unpack(archive []byte, member string) ([]byte, error) {
	uncompressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(uncompressed); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("no %s: %w", member, err)
		}
		if header.Name == member {
			return io.ReadAll(io.LimitReader(files, mostBytes))
		}
	}
}
