package reflector

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestList: all pages of a list come, each asked for once; an object that cannot be decoded comes with its name, and is told of.
func TestList(t *testing.T) {
	pages := []string{
		`{"metadata":{"continue":"next"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"bad"},"spec":{"secretRef":5}}]}`,
		`{"metadata":{},"items":[{"metadata":{"name":"c"}}]}`,
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if request.URL.Query().Get("limit") != "500" || (request.URL.Query().Get("continue") == "next") != (asked == 1) || asked >= len(pages) {
			w.WriteHeader(http.StatusGone)
			return
		}
		asked++
		_, _ = fmt.Fprint(w, pages[asked-1])
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL}, server.Client(), gardencorev1beta1.GroupVersion)
	must.Succeed(t, err)
	var names, bad []string
	kind := Kind{
		Name: "Seed", Resource: gardencorev1beta1.Resource("seeds"), New: func() runtime.Object { return &gardencorev1beta1.Seed{} },
		Undecodable: func(_, name string, _ error) { bad = append(bad, name) },
	}
	each := func(object runtime.Object) error {
		names = append(names, object.(*gardencorev1beta1.Seed).Name)
		return nil
	}
	must.Succeed(t, List(t.Context(), client, kind, logr.Discard(), each))
	expect.True(t, strings.Join(names, " ") == "a bad c" && strings.Join(bad, " ") == "bad",
		"got %v, and cannot decode %v", names, bad)
	expect.ErrorContains(t, List(t.Context(), client, kind, logr.Discard(), each), "listing seeds.core.gardener.cloud",
		"an error of the API server")
	asked = 0
	enough := errors.New("enough")
	if err := List(t.Context(), client, kind, logr.Discard(), func(runtime.Object) error { return enough }); !errors.Is(err, enough) || asked != 1 {
		t.Errorf("an error of the reader: %v after %d pages", err, asked)
	}
}
