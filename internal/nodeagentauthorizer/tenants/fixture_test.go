package tenants

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	clocktesting "k8s.io/utils/clock/testing"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// folder is a folder of shoots with what serves them.
type folder struct {
	*Directory
	t     *testing.T
	clock *clocktesting.FakeClock

	mu sync.Mutex
	// begun are all that began to serve, in that order.
	begun []*fakeShoot
	// refuses is what Serve fails with.
	refuses error
}

// fakeShoot answers with the name of its shoot and which one after the other of it it is.
type fakeShoot struct {
	name  string
	entry *config.ShootEntry
	ctx   context.Context
	ready bool
	// exceeded is set once it exceeds its limits.
	exceeded bool
}

// ended reports whether it is to serve no more.
func (s *fakeShoot) ended() bool { return s.ctx.Err() != nil }

func newFolder(t *testing.T) *folder {
	f := &folder{t: t, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	f.Directory = New(Options{Path: t.TempDir(), Serve: f.serve, Clock: f.clock, Log: testr.New(t), Absent: func(name string) http.Handler {
		return answer(http.StatusNotFound, "no "+name)
	}})
	f.write("kubeconfig", "credentials")
	return f
}

func answer(code int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) })
}

func (f *folder) serve(ctx context.Context, name string, entry *config.ShootEntry) (Handler, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &fakeShoot{name: name, entry: entry, ctx: ctx}
	f.begun = append(f.begun, s)
	if f.refuses != nil {
		return Handler{}, f.refuses
	}
	return Handler{Handler: answer(http.StatusOK, fmt.Sprintf("%s of %s", name, entry.TargetClientConnection.Kubeconfig[len(f.Path)+1:])), Ready: func() bool { return s.ready }, Ended: func() bool { return s.exceeded }}, nil
}

// entry is the file of a shoot.
func entry(kubeconfig string) string {
	return "targetClientConnection: {kubeconfig: " + kubeconfig + "}\n"
}

func (f *folder) write(file, content string) {
	f.t.Helper()
	must.Succeed(f.t, os.WriteFile(filepath.Join(f.Path, file), []byte(content), 0o600))
}

func (f *folder) remove(file string) {
	f.t.Helper()
	must.Succeed(f.t, os.Remove(filepath.Join(f.Path, file)))
}

// looks has the folder looked at.
func (f *folder) looks() {
	f.t.Helper()
	must.Succeed(f.t, f.look(f.t.Context()))
}

// ask asks under a path.
func (f *folder) ask(path string) string {
	recorder := httptest.NewRecorder()
	f.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, path, nil))
	return fmt.Sprintf("%d %s", recorder.Code, recorder.Body.String()[:recorder.Body.Len()-1])
}

func (f *folder) wantAnswer(when, name, want string) {
	f.t.Helper()
	expect.Equal(f.t, f.ask("/webhooks/auth/nodeagent/"+name), want, "%s: %s answers", when, name)
}

// wantBegun says how many began to serve so far, and which of them, counted from one, are to serve on.
func (f *folder) wantBegun(when string, n int, serving ...int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	must.True(f.t, len(f.begun) == n, "%s: %d began to serve, want %d", when, len(f.begun), n)
	on := map[int]bool{}
	for _, i := range serving {
		on[i] = true
	}
	for i, s := range f.begun {
		expect.True(f.t, s.ended() != on[i+1], "%s: the one of %s that began as number %d ended: %v", when, s.name, i+1, s.ended())
	}
}

// contextOf is one that the test ends.
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func mustWrite(t *testing.T, file string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
}
