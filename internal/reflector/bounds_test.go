package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// bounded returns a follower of an API server with bounds.
func bounded(t *testing.T, pages int, answer http.HandlerFunc) *Follower {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	bounds := NewBounds(pages, time.Minute)
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, bounds.Client(server.Client()), gardencorev1beta1.GroupVersion)
	must.Succeed(t, err)
	kind := Kind{
		Name: "Shoot", Resource: gardencorev1beta1.Resource("shoots"), Bounds: bounds, New: func() runtime.Object { return &gardencorev1beta1.Shoot{} },
		Set: func(runtime.Object) {}, Remove: func(string, string) {}, Retain: func(Names) {},
	}
	return New(kind, client, clock.RealClock{}, logr.Discard())
}

// TestBounds_LargeObjects: a page that is too large is read again with fewer objects, so that objects of any size that etcd keeps are read (NAA-12).
func TestBounds_LargeObjects(t *testing.T) {
	const all, each = 100, 1 << 20
	largest := 0
	f := bounded(t, 1, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		to, next := min(from+limit, all), ""
		if largest = max(largest, limit); to < all {
			next = strconv.Itoa(to)
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"7","continue":%q},"items":[`, next)
		for i := from; i < to; i++ {
			_, _ = fmt.Fprintf(w, `%s{"metadata":{"name":"a%d"},"other":"%s"}`, strings.Repeat(",", min(i-from, 1)), i, strings.Repeat("x", each))
		}
		_, _ = io.WriteString(w, "]}")
	})
	read := map[string]bool{}
	version, err := f.readList(t.Context(), func(object runtime.Object) error { read[object.(*gardencorev1beta1.Shoot).Name] = true; return nil })
	expect.True(t, err == nil && version == "7" && len(read) == all && largest == pageSize,
		"NAA-12: got version %s, %d objects, %v", version, len(read), err)
}

// TestBounds_Exceeded: what no API server of Kubernetes answers is an error; a list beyond its limit is reported (NAA-12).
func TestBounds_Exceeded(t *testing.T) {
	for name, c := range map[string]struct{ item, want string }{
		"NAA-12/within the limits":    {`{"metadata":{"name":"a"}}`, ""},
		"NAA-12/a long name":          {`{"metadata":{"name":"` + strings.Repeat("x", 254) + `"}}`, "a name has 254 bytes"},
		"NAA-12/a long namespace":     {`{"metadata":{"name":"a","namespace":"` + strings.Repeat("x", 254) + `"}}`, "a name has 254 bytes"},
		"NAA-12/a long UID":           {`{"metadata":{"name":"a","uid":"` + strings.Repeat("x", 65) + `"}}`, "a UID or resource version has 65 bytes"},
		"NAA-12/many used fields":     {`{"metadata":{"name":"a","labels":{"a":"` + strings.Repeat("x", objectLimit) + `"}}}`, "an object is too large"},
		"NAA-12/many objects":         {strings.Repeat(`{"metadata":{"name":"a"}},`, pageSize) + `{"metadata":{"name":"a"}}`, "a page has more than 500 objects"},
		"NAA-12/a large object":       {`{"metadata":{"name":"` + strings.Repeat("x", answerLimit) + `"}}`, "it is too large"},
		"NAA-12/an unused large text": {`{"metadata":{"name":"a"},"other":"` + strings.Repeat("x", objectLimit) + `"}`, ""},
	} {
		f := bounded(t, 1, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"7"},"items":[`+c.item+`]}`)
		})
		var reported error
		f.Bounds.Exceeded = func(_ string, reason error) { reported = reason }
		_, err := f.list(t.Context(), metav1.ListOptions{})
		if c.want == "" && (err != nil || reported != nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(reported, errBounds)) {
			t.Errorf("%s: got %v, reported %v, want %s", name, err, reported, c.want)
		}
		expect.Equal(t, len(f.Bounds.large), 0, "%s: the room for a large answer is still taken", name)
	}
}

// TestBounds_OneLargeAnswer: a second large answer waits until the first is closed, a small one does not (NAA-12).
func TestBounds_OneLargeAnswer(t *testing.T) {
	bounds := NewBounds(1, time.Minute)
	first, second := slot{bounds: bounds}, slot{bounds: bounds}
	must.Succeed(t, first.take(t.Context(), smallAnswer+1))
	ctx, cancel := context.WithCancel(t.Context())
	expect.Succeed(t, second.take(ctx, smallAnswer), "NAA-12: a small answer waits")
	cancel()
	expect.ErrorIs(t, second.take(ctx, smallAnswer+1), context.Canceled, "NAA-12: a second large answer does not wait")
	first.giveBack()
	expect.Succeed(t, second.take(t.Context(), smallAnswer+1), "NAA-12: a large answer waits for nobody")
}
