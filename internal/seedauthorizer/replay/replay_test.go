package replay

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/seedauthorizer/dump"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/auditgen"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/gen/landscape"
	"github.com/espalier-project/espalier/test/must"
)

const core = ".core.gardener.cloud"

func content(o *builders.Object) any { return json.RawMessage(o.JSON()) }

// run replays what write logs.
func run(t *testing.T, o Options, write func(*auditgen.Log)) *Result {
	t.Helper()
	var text bytes.Buffer
	log := auditgen.New(&text)
	write(log)
	must.Succeed(t, log.Flush())
	o.Source, o.Selectors = auditlog.Source{Files: []string{"-"}, Stdin: &text}, true
	result, err := Run(t.Context(), o)
	must.Succeed(t, err)
	return result
}

// cells are the lines of a table, short.
func cells(r *Result) []string {
	var all []string
	for _, c := range r.Cells() {
		all = append(all, strings.Join([]string{c.Rule, c.Client, c.Resource, strings.Join(c.Verbs, ","), c.Was + "→" + c.Is, c.Known, c.Example + " (" + c.At + ")", strings.Join(c.Missing, "; ")}, " | "))
	}
	return all
}

// hosted is a garden with a ManagedSeed, as its log tells.
func hosted(log *auditgen.Log) {
	log.Add(auditgen.Operator("create seeds"+core+" /host", content(builders.Seed("host"))))
	log.Add(auditgen.Operator("create shoots"+core+" garden/web", content(builders.Shoot("garden", "web").OnSeed("host"))))
	log.Add(auditgen.Operator("create managedseeds.seedmanagement.gardener.cloud garden/m", content(builders.ManagedSeed("garden", "m", "web"))))
}

// TestEdge: with one edge switched off, the replay of a landscape's log prints exactly what this edge decides.
func TestEdge(t *testing.T) {
	o := landscape.Options{Seeds: 10, Projects: 5, Shoots: 100}
	write := func(log *auditgen.Log) {
		must.Succeed(t, log.Landscape(o, 2000))
		hosted(log)
		for range 3 {
			log.Add(auditgen.Seed("m", "get managedseeds.seedmanagement.gardener.cloud garden/m"))
			log.Add(auditgen.Seed("host", "get managedseeds.seedmanagement.gardener.cloud garden/m"))
			log.Add(auditgen.Seed("m", "get shoots"+core+" garden/web").But())
		}
	}
	r := run(t, Options{Second: &RuleSet{Without: []string{"GE-27"}}}, write)
	const want = "SR-18 | gardenlet of Seed:m | managedseeds.seedmanagement.gardener.cloud | get | Allow→NoOpinion | log | get managedseeds.seedmanagement.gardener.cloud garden/m (stdin line 2454) | "
	got := cells(r)
	if len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.Contains(got[0], "ManagedSeed:garden/m -> Seed:m (GE-27)") || r.Cells()[0].Count != 3 || r.Decided != 2009 {
		t.Errorf("RPL-2: %d decided: got %q, want %q", r.Decided, got, want)
	}
	if r := run(t, Options{}, write); r.Total != 0 || r.Undecided != 0 {
		t.Errorf("RPL-1: %d undecided, and the log says otherwise: %q", r.Undecided, cells(r))
	}
	if r := run(t, Options{Second: &RuleSet{}}, write); r.Total != 0 {
		t.Errorf("RPL-2: the same rule set decides differently: %q", cells(r))
	}
}

// TestPolicies: two policies are compared, and what a read would have to decide is undecided.
func TestPolicies(t *testing.T) {
	first, second := RuleSet{Policy: rules.Policy{ReadAll: true}}, RuleSet{Policy: rules.Policy{WriteOwned: true}}
	r := run(t, Options{First: first, Second: &second}, func(log *auditgen.Log) {
		log.Add(auditgen.Operator("create seeds"+core+" /a", content(builders.Seed("a"))))
		log.Add(auditgen.Operator("create shoots"+core+" garden-dev/web", content(builders.Shoot("garden-dev", "web").OnSeed("b"))))
		log.Add(auditgen.Seed("a", "get shoots"+core+" garden-dev/web"))
		log.Add(auditgen.Seed("a", "watch shoots"+core+" garden-dev/web"))
		log.Add(auditgen.Seed("a", "get shoots"+core+" garden-dev/unseen"))
		log.Add(auditgen.Seed("a", "list shoots"+core))
		selected := auditgen.Seed("a", "list shoots"+core)
		selected.Query = "?labelSelector=name.seed.gardener.cloud%2Fa%3Dtrue&limit=500"
		log.Add(selected)
		log.Add(auditgen.Operator("get shoots"+core+" garden-dev/web", nil))
	})
	want := []string{
		"SR-26 | gardenlet of Seed:a | shoots.core.gardener.cloud | get,list,watch | Allow→NoOpinion | log | get shoots.core.gardener.cloud garden-dev/web (stdin line 3) | Shoot:garden-dev/web -> Seed:a (GE-48: spec.seedName of the Shoot)",
	}
	if got := cells(r); len(got) != 1 || got[0][:100] != want[0][:100] || r.Cells()[0].Count != 3 || r.Undecided != 1 || r.Decided != 5 {
		t.Errorf("RPL-2, RPL-5: %d undecided of %d: got %q, want %q", r.Undecided, r.Decided, got, want)
	}
}

// TestLog: decisions are compared with the annotations of the log, or with the codes of responses.
func TestLog(t *testing.T) {
	r := run(t, Options{}, func(log *auditgen.Log) {
		log.Add(auditgen.Operator("create seeds"+core+" /a", content(builders.Seed("a"))))
		log.Add(auditgen.Operator("create shoots"+core+" garden-dev/web", content(builders.Shoot("garden-dev", "web").OnSeed("a").Resource(builders.Ref("Secret", "own")))))
		log.Add(auditgen.Seed("a", "get secrets garden-dev/own"))
		log.Add(auditgen.Seed("a", "update secrets garden-dev/own").But()) // We allow it.
		log.Add(auditgen.Seed("a", "get secrets garden-dev/foreign"))      // We refuse it.
		byRBAC := auditgen.Seed("a", "get secrets garden-dev/other")       // Somebody else allows it.
		byRBAC.Reason = "RBAC: allowed by ClusterRoleBinding \"x\""
		log.Add(byRBAC)
		refusedLater := auditgen.Seed("a", "create secrets garden-dev/x") // Admission refuses it.
		refusedLater.Code = 403
		log.Add(refusedLater)
		untold := auditgen.Seed("a", "get secrets garden-dev/untold")
		untold.Untold, untold.Code = true, 404
		log.Add(untold)
		untold.Code = 500
		log.Add(untold)
		started := auditgen.Seed("a", "get secrets garden-dev/foreign")
		started.Stage = "RequestReceived"
		log.Add(started)
	})
	want := []string{
		"SR-22 | gardenlet of Seed:a | secrets | get | Allow→NoOpinion | nothing | get secrets garden-dev/foreign (stdin line 5) | ",
		"SR-22 | gardenlet of Seed:a | secrets | update | NoOpinion→Allow | log | update secrets garden-dev/own (stdin line 4) | ",
	}
	got := cells(r)
	for i := range got {
		got[i] = got[i][:min(len(got[i]), strings.LastIndex(got[i], "| ")+2)]
	}
	if diff := cmp.Diff(want, got); diff != "" || r.ByOthers != 1 || r.Undecided != 1 || r.Decided != 7 {
		t.Errorf("RPL-1: %d elsewhere, %d undecided, %d decided: %s", r.ByOthers, r.Undecided, r.Decided, diff)
	}
}

// TestTimeTravel: requests are decided by the garden as the log has it at this time, and by the dump before.
func TestTimeTravel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dump")
	to, err := dump.Create(dir, time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))
	must.Succeed(t, err)
	for _, o := range []*builders.Object{builders.Shoot("garden-dev", "web").OnSeed("a"), builders.Shoot("garden-dev", "old").OnSeed("a")} {
		object := relation.WatchOf(relation.Shoot).New()
		must.Succeed(t, o.Into(object))
		must.Succeed(t, to.Add(relation.Shoot, object))
	}
	must.Succeed(t, expect.ErrorOf(to.Close()))
	get := func(seed, name string) auditgen.Request {
		return auditgen.Seed(seed, "get shoots"+core+" garden-dev/"+name)
	}
	r := run(t, Options{Dump: dir}, func(log *auditgen.Log) {
		log.Add(get("a", "web"))
		log.Add(get("b", "web").But())
		log.Add(auditgen.Operator("patch shoots"+core+" garden-dev/web", content(builders.Shoot("garden-dev", "web").OnSeed("b"))))
		log.Add(get("b", "web"))
		log.Add(get("a", "web").But())
		log.Add(auditgen.Operator("patch shoots"+core+"/status garden-dev/web", nil)) // Without a body nothing changes.
		log.Add(get("b", "web"))
		deleted := auditgen.Operator("delete shoots"+core+" garden-dev/web", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
		log.Add(deleted)
		log.Add(get("b", "web").But())
		log.Add(get("a", "old").But()) // The dump says otherwise.
	})
	if got := cells(r); len(got) != 1 || !strings.Contains(got[0], "NoOpinion→Allow | dump | get shoots.core.gardener.cloud garden-dev/old (stdin line 10)") ||
		r.Objects != 2 || r.Writes != 2 || r.Bodiless != 1 {
		t.Errorf("RPL-3: got %q of %d objects, %d writes, %d without a body", got, r.Objects, r.Writes, r.Bodiless)
	}
}

// TestDryRunsAndCollections: a dry run changes nothing, and the deletion of a collection removes what its response lists.
func TestDryRunsAndCollections(t *testing.T) {
	get := auditgen.Seed("a", "get shoots"+core+" garden-dev/web")
	list := map[string]any{"kind": "ShootList", "items": []any{map[string]any{"metadata": map[string]any{"namespace": "garden-dev", "name": "web"}}}}
	deletion := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": []string{"All"}}
	status := map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"}
	moved := auditgen.Operator("patch shoots"+core+" garden-dev/web", content(builders.Shoot("garden-dev", "web").OnSeed("b")))
	r := run(t, Options{}, func(log *auditgen.Log) {
		log.Add(auditgen.Operator("create seeds"+core+" /a", content(builders.Seed("a"))))
		log.Add(auditgen.Operator("create shoots"+core+" garden-dev/web", content(builders.Shoot("garden-dev", "web").OnSeed("a"))))
		for _, query := range []string{"?dryRun=All", "?fieldManager=x&dryRun=All&dryRun=All", "?dry%52un=%41ll"} {
			dry := moved
			dry.Query = query
			log.Add(dry)
		}
		for _, verb := range []string{"delete", "deletecollection"} {
			dry := auditgen.Operator(verb+" shoots"+core+" garden-dev/web", status)
			dry.Request = deletion
			log.Add(dry)
		}
		log.Add(get)
		unlisted := auditgen.Operator("deletecollection shoots"+core+" garden-dev/", status)
		log.Add(unlisted)
		unlisted.Code = 500
		log.Add(unlisted)
		log.Add(get)
		log.Add(auditgen.Operator("deletecollection shoots"+core+" garden-dev/", list))
		log.Add(get.But())
	})
	expect.True(t, r.Total == 0 && r.Undecided == 0 && r.Decided == 3 && r.Followed == (auditlog.Followed{Writes: 3, Unlisted: 2}),
		"RPL-10: %d undecided of %d, %+v: %q", r.Undecided, r.Decided, r.Followed, cells(r))
}

// TestLongRequests: a watch is decided by the graph of its start, once; where the log does not have that, a difference is undecided.
func TestLongRequests(t *testing.T) {
	watch := auditgen.Seed("a", "watch shoots"+core+" garden-dev/web")
	watch.Query = "?fieldSelector=metadata.name%3Dweb&watch=true"
	for name, c := range map[string]struct {
		started                       bool
		decided, undecided, different int
	}{
		"RPL-11/the log has its start":  {true, 1, 0, 0},
		"RPL-11/the log has its end":    {false, 1, 1, 0},
		"RPL-11/nothing was written in": {false, 1, 0, 0},
	} {
		r := run(t, Options{}, func(log *auditgen.Log) {
			log.Add(auditgen.Operator("create seeds"+core+" /a", content(builders.Seed("a"))))
			log.Add(auditgen.Operator("create shoots"+core+" garden-dev/web", content(builders.Shoot("garden-dev", "web").OnSeed("a"))))
			end := watch
			end.Began = log.Lines() + 1
			start := watch
			if start.Stage = "ResponseStarted"; !c.started {
				start.Stage = "RequestReceived"
			}
			log.Add(start)
			if c.undecided > 0 || c.started {
				log.Add(auditgen.Operator("patch shoots"+core+" garden-dev/web", content(builders.Shoot("garden-dev", "web").OnSeed("b"))))
			}
			for range 200 {
				log.Add(auditgen.Operator("get configmaps n/x", nil))
			}
			log.Add(end)
		})
		expect.True(t, r.Decided == c.decided && r.Undecided == c.undecided && r.Total == c.different,
			"%s: %d decided, %d undecided: %q", name, r.Decided, r.Undecided, cells(r))
	}
}

// TestDecisionsAboutLists: the decisions of another executable about a list of events are found by their number in it.
func TestDecisionsAboutLists(t *testing.T) {
	var printed strings.Builder
	for item, allowed := range []bool{true, false, true} {
		must.Succeed(t, Print(&printed, &auditlog.Event{Line: 1 + min(item, 1), Item: item}, rules.Decision{Allowed: allowed, Rule: "SR-1"}))
	}
	// The line without a number is the one of releases that read no lists.
	expect.Equal(t, printed.String(), "0 1 Allow \"SR-1\"\n0 2 NoOpinion \"SR-1\" 1\n0 2 Allow \"SR-1\" 2\n", "RPL-8: printed")
	against := NewAgainst(strings.NewReader(printed.String()))
	var got []bool
	for _, e := range []auditlog.Event{{Line: 1}, {Line: 2, Item: 1}, {Line: 2, Item: 2}, {Line: 2, Item: 3}} {
		d, err := against.next(&e)
		must.Succeed(t, err)
		got = append(got, d.Allowed)
	}
	expect.DeepEqual(t, got, []bool{true, false, true, false}, "RPL-8")
}

// TestSpeed replays a generated log as it would be on disk, prints the time, and fails if memory grows with the log (RPL-6).
func TestSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("a log of 20,000 events")
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	file, err := os.Create(path)
	must.Succeed(t, err)
	log := auditgen.New(file)
	must.Succeed(t, log.Landscape(landscape.Options{Seeds: 20, Projects: 10, Shoots: 500}, 20_000))
	must.Succeed(t, log.Flush())
	_ = file.Close()
	started := time.Now()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := Run(t.Context(), Options{Source: auditlog.Source{Files: []string{path}}, Selectors: true})
	if err != nil || r.Total != 0 {
		t.Fatalf("RPL-6: %v, %q", err, cells(r))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d lines in %s, %d MiB kept", r.Lines, time.Since(started), (after.HeapAlloc-before.HeapAlloc)>>20)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	expect.True(t, kept <= 50<<20, "RPL-6: %d bytes are kept", kept)
}
