package tenants

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestComesAndGoes: a shoot is served from its file on, whether or not it is ready, and until there is none.
func TestComesAndGoes(t *testing.T) {
	f := newFolder(t)
	f.looks()
	f.wantAnswer("before", "web", "404 no web")
	f.write("web.yaml", entry("kubeconfig"))
	f.write("api.yaml", entry("kubeconfig"))
	f.looks()
	f.wantAnswer("with a file", "web", "200 web of kubeconfig")
	f.wantAnswer("with a file", "api", "200 api of kubeconfig")
	f.looks()
	f.wantBegun("nothing has changed", 2, 1, 2)
	f.remove("web.yaml")
	f.looks()
	f.wantAnswer("without its file", "web", "404 no web")
	f.wantBegun("without its file", 2, 1) // Files are read by name.
}

// TestOtherFiles: what else a mounted Secret brings is no shoot.
func TestOtherFiles(t *testing.T) {
	f := newFolder(t)
	for _, file := range []string{".yaml", ".hidden.yaml", "..2026_11_22.yaml", "web.yml", "web.kubeconfig", "web.yaml.bak"} {
		f.write(file, entry("kubeconfig"))
	}
	f.looks()
	f.wantBegun("no entry", 0)
}

// TestSuccessor: a shoot whose files changed answers from what it knew until the new is complete.
func TestSuccessor(t *testing.T) {
	f := newFolder(t)
	f.write("web.yaml", entry("kubeconfig"))
	f.looks()

	f.write("second", "credentials")
	f.write("web.yaml", entry("second"))
	f.looks()
	f.wantAnswer("the new is not complete", "web", "200 web of kubeconfig")
	f.wantBegun("the new is not complete", 2, 1, 2)
	f.looks()
	f.wantBegun("looked at again meanwhile", 2, 1, 2)

	f.write("second", "other credentials")
	f.looks()
	f.wantBegun("changed before it was complete", 3, 1, 3)
	f.begun[1].ready = true // Too late.
	f.looks()
	f.wantAnswer("the one that was replaced is complete", "web", "200 web of kubeconfig")

	f.begun[2].ready = true
	f.looks()
	f.wantAnswer("the new is complete", "web", "200 web of second")
	f.wantBegun("the new is complete", 3, 3)
	f.looks()
	f.wantAnswer("looked at once more", "web", "200 web of second")
	f.wantBegun("looked at once more", 3, 3)

	f.write("web.yaml", entry("kubeconfig"))
	f.looks()
	f.remove("web.yaml")
	f.looks()
	f.wantAnswer("removed while a new one is to come", "web", "404 no web")
	f.wantBegun("removed while a new one is to come", 4)
}

// TestExceeded: a shoot that exceeded its limits is read anew, and answers with the reason until the new is complete (NAA-12).
func TestExceeded(t *testing.T) {
	f := newFolder(t)
	f.write("web.yaml", entry("kubeconfig"))
	f.looks()
	f.begun[0].exceeded = true
	f.looks()
	f.wantBegun("NAA-12/it ended", 2, 1, 2)
	f.looks()
	f.wantBegun("NAA-12/the new goes on", 2, 1, 2)
	f.begun[1].exceeded = true
	f.looks()
	f.wantBegun("NAA-12/the new ended, too", 3, 1, 3)
	f.begun[2].ready = true
	f.looks()
	f.wantBegun("NAA-12/the third is complete", 3, 3)
}

// TestServedOn: whatever is wrong with a file, or with the folder, its former entry is served.
func TestServedOn(t *testing.T) {
	for name, spoil := range map[string]func(*folder) error{
		"the entry is broken":       func(f *folder) error { f.write("web.yaml", "targetClientConnection: ["); return nil },
		"an unknown key":            func(f *folder) error { f.write("web.yaml", entry("kubeconfig")+"unknown: true\n"); return nil },
		"there is no kubeconfig":    func(f *folder) error { f.remove("kubeconfig"); return nil },
		"it cannot be served":       func(f *folder) error { f.refuses = errors.New("fake"); f.write("kubeconfig", "new"); return nil },
		"the folder cannot be read": func(f *folder) error { f.Path += "/none"; return os.ErrNotExist },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			f.write("web.yaml", entry("kubeconfig"))
			f.looks()
			want := spoil(f)
			expect.ErrorIs(t, f.look(t.Context()), want)
			f.wantAnswer(name, "web", "200 web of kubeconfig")
			expect.False(t, f.begun[0].ended(), "it is to serve no more")
			for _, s := range f.begun[1:] {
				expect.True(t, s.ended(), "what could not be served goes on")
			}
		})
	}
}

// TestStart: the folder is looked at again in each period, and all shoots end with the process.
func TestStart(t *testing.T) {
	f := newFolder(t)
	ended := make(chan error)
	ctx, end := contextOf(t)
	go func() { ended <- f.Start(ctx) }()
	f.awaitPeriod()
	expect.True(t, f.Read() && !f.NeedLeaderElection(), "the folder has not been read, or only the leader reads it")
	f.write("web.yaml", entry("kubeconfig"))
	f.clock.Step(period)
	f.awaitPeriod()
	f.wantAnswer("a period later", "web", "200 web of kubeconfig")
	f.wantBegun("a period later", 1, 1)
	end()
	expect.Succeed(t, <-ended)
	f.wantBegun("at the end", 1)
}

// TestNotRead: a folder that is not there yet is waited for.
func TestNotRead(t *testing.T) {
	f := newFolder(t)
	f.Path += "/later"
	ctx, end := contextOf(t)
	defer end()
	go f.Start(ctx) //nolint:errcheck // It ends with the test.
	f.awaitPeriod()
	expect.False(t, f.Read(), "a folder that is not there was read")
	must.Succeed(t, os.Mkdir(f.Path, 0o755))
	f.clock.Step(period)
	f.awaitPeriod()
	expect.True(t, f.Read(), "the folder is there and was not read")
}

// awaitPeriod waits until the folder has been looked at.
func (f *folder) awaitPeriod() {
	f.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !f.clock.HasWaiters(); time.Sleep(time.Millisecond) {
		must.False(f.t, time.Now().After(deadline), "nobody waits for the next period")
	}
}
