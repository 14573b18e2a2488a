package nodeagentauthorizer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster/answers"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
)

// TestAnswersOfShoots: an answer of a shoot that would take too much memory fails.
func TestAnswersOfShoots(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		items := map[string]int{"/api/v1/nodes": 1, "/api/v1/pods": 1 << 17}[r.URL.Path] // A Pod has more than 1 KB.
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[`+strings.Repeat("{},", items)+"{}]}")
	}))
	defer server.Close()
	p := &Process{budget: answers.NewBudget(allBytes, func() {}), types: answers.NewTypes()}
	connection := &config.ClientConnection{}
	connection.Kubeconfig = kubeconfig.File(t, server.URL)
	shoot, err := p.reach(t.Context(), connection, process.RESTConfig)
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) error {
		response, err := shoot.HTTP.Get(server.URL + path)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		_, err = io.ReadAll(response.Body)
		return err
	}
	if err := read("/api/v1/nodes"); err != nil {
		t.Errorf("LIM-2: a small answer fails: %v", err)
	}
	if err := read("/api/v1/pods"); err == nil {
		t.Error("LIM-2: an answer that takes 300 times its size is decoded")
	}
}
