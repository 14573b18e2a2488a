package node

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// logs answers what kube-apiserver asks for kubectl logs: /containerLogs/<namespace>/<Pod>/<container>, with follow, previous and tailLines.
func (n *Node) logs(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/containerLogs/"), "/")
	if len(parts) != 3 {
		http.Error(w, "only logs are here", http.StatusNotFound)
		return
	}
	p := n.named(parts[0], parts[1])
	if p == nil {
		http.Error(w, fmt.Sprintf("there is no Pod %s/%s", parts[0], parts[1]), http.StatusNotFound)
		return
	}
	query, restarts := r.URL.Query(), p.restarted()
	if query.Get("previous") == "true" {
		restarts--
	}
	file, err := os.Open(p.log(restarts))
	if err != nil {
		http.Error(w, fmt.Sprintf("there is no such log of Pod %s/%s", parts[0], parts[1]), http.StatusNotFound)
		return
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if lines, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		content = tail(content, lines)
	}
	if _, err := w.Write(content); err != nil || query.Get("follow") != "true" {
		return
	}
	// More comes as long as the same process runs.
	for http.NewResponseController(w).Flush() == nil && r.Context().Err() == nil {
		select {
		case <-p.ended:
			return
		default:
		}
		if count, err := io.Copy(w, file); err != nil || count == 0 && p.restarted() != restarts {
			return
		}
		wait(r.Context(), interval)
	}
}

// tail returns the last lines of a text.
func tail(text []byte, lines int) []byte {
	all := bytes.SplitAfter(text, []byte("\n"))
	if last := len(all) - 1; len(all[last]) == 0 {
		all = all[:last]
	}
	return bytes.Join(all[max(0, len(all)-lines):], nil)
}
