package auditlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/test/expect"
)

// TestDryRuns: a dry run is found as the API server finds it.
func TestDryRuns(t *testing.T) {
	const deleting = `{"kind":"DeleteOptions","apiVersion":"v1"`
	for name, c := range map[string]struct {
		verb, query, body string
		want              bool
	}{
		"RPL-10/in the URI":                      {"patch", "?dryRun=All&fieldManager=x", "", true},
		"RPL-10/the last parameter":              {"create", "?fieldManager=x&dryRun=All", "", true},
		"RPL-10/repeated":                        {"update", "?dryRun=All&dryRun=All", "", true},
		"RPL-10/an encoded value":                {"update", "?dryRun=%41ll", "", true},
		"RPL-10/an encoded name":                 {"update", "?dry%52un=All", "", true},
		"RPL-10/after a faulty parameter":        {"update", "?a=%zz&dryRun=All", "", true},
		"RPL-10/another parameter":               {"update", "?fieldManager=dryRun=All&dryrun=All", "", false},
		"RPL-10/no parameter":                    {"update", "", "", false},
		"RPL-10/a body that is not read for it":  {"create", "", `{"dryRun":["All"]}`, false},
		"RPL-10/in the body of a deletion":       {"delete", "", deleting + `,"dryRun":["All"]}`, true},
		"RPL-10/in the body of a collection's":   {"deletecollection", "?labelSelector=a", deleting + `,"dryRun":["All"]}`, true},
		"RPL-10/a deletion without a body":       {"delete", "?dryRun=All", "", true},
		"RPL-10/a body hides the URI":            {"delete", "?dryRun=All", deleting + `}`, false},
		"RPL-10/an empty list in a body":         {"delete", "", deleting + `,"dryRun":[]}`, false},
		"RPL-10/the deletion of a collection":    {"deletecollection", "?dryRun=All", "", true},
		"RPL-10/a text in the place of the list": {"delete", "", deleting + `,"dryRun":"All"}`, false},
	} {
		e := Event{Verb: c.verb, Code: 200, RequestURI: "/api/v1/namespaces/n/secrets/a" + c.query, RequestObject: c.body}
		got := e.DryRun()
		expect.True(t, got == c.want && e.Wrote() != c.want, "%s: got %v", name, got)
	}
}

// TestChanges: what a write makes of objects, and when they are gone.
func TestChanges(t *testing.T) {
	const list, ended = `{"kind":"SecretList","items":[`, `"deletionTimestamp":"2026-11-25T00:00:00Z"`
	object := func(more string) string {
		return `{"kind":"Secret","metadata":{"namespace":"n","name":"a"` + more + `}}`
	}
	for name, c := range map[string]struct {
		event Event
		want  string
	}{
		"RPL-3/a response":                      {Event{Verb: "patch", ResponseObject: object("")}, "n/a stays"},
		"RPL-3/a request":                       {Event{Verb: "update", RequestObject: object("")}, "n/a stays"},
		"RPL-3/a request that is a patch":       {Event{Verb: "patch", RequestObject: object("")}, "unknown"},
		"RPL-3/no body":                         {Event{Verb: "delete"}, "unknown"},
		"RPL-3/half a body":                     {Event{Verb: "update", ResponseObject: `{"kind":`}, "unknown"},
		"RPL-3/the name of the request":         {Event{Verb: "update", ResponseObject: `{}`}, "m/b stays"},
		"RPL-3/a deletion":                      {Event{Verb: "delete", ResponseObject: `{"kind":"Status"}`}, "m/b gone"},
		"RPL-3/one that answers with an object": {Event{Verb: "delete", ResponseObject: object("")}, "n/a gone"},
		"RPL-3/a finalizer":                     {Event{Verb: "delete", ResponseObject: object(`,"finalizers":["f"],` + ended)}, "n/a stays"},
		"RPL-3/the last finalizer":              {Event{Verb: "patch", ResponseObject: object("," + ended)}, "n/a gone"},
		"RPL-3/a Namespace with content":        {Event{Verb: "delete", ResponseObject: `{"kind":"Namespace","metadata":{"name":"x",` + ended + `},"spec":{"finalizers":["kubernetes"]}}`}, "m/x stays"},
		"RPL-3/a Namespace without":             {Event{Verb: "update", Subresource: "finalize", ResponseObject: `{"kind":"Namespace","metadata":{"name":"x",` + ended + `},"spec":{}}`}, "m/x gone"},
		"RPL-10/a collection":                   {Event{Verb: "deletecollection", ResponseObject: list + `{"metadata":{"name":"a"}},{"metadata":{"namespace":"n","name":"b","finalizers":["f"]}}]}`}, "m/a gone, n/b stays"},
		"RPL-10/an empty collection":            {Event{Verb: "deletecollection", ResponseObject: list + "]}"}, ""},
		"RPL-10/a Status":                       {Event{Verb: "deletecollection", ResponseObject: `{"kind":"Status"}`}, "unknown"},
		"RPL-10/no list":                        {Event{Verb: "deletecollection"}, "unknown"},
		"RPL-10/an item that is none":           {Event{Verb: "deletecollection", ResponseObject: list + `1]}`}, "unknown"},
		"RPL-10/it failed":                      {Event{Verb: "deletecollection", Code: 500, ResponseObject: list + `]}`}, "unknown"},
		"RPL-10/waiting for dependents":         {Event{Verb: "deletecollection", RequestURI: "/x?propagationPolicy=Foreground", ResponseObject: list + `{"metadata":{"name":"a"}}]}`}, "m/a stays"},
		"RPL-10/not waiting for them":           {Event{Verb: "deletecollection", RequestObject: `{"propagationPolicy":"Background"}`, ResponseObject: list + `{"metadata":{"name":"a"}}]}`}, "m/a gone"},
	} {
		c.event.Namespace, c.event.Name = "m", "b"
		if c.event.Verb == "deletecollection" {
			c.event.Name = ""
		}
		changes, known := c.event.Changes()
		var all []string
		for _, change := range changes {
			all = append(all, fmt.Sprintf("%s/%s %s", change.Namespace, change.Name, map[bool]string{true: "gone", false: "stays"}[change.Gone]))
		}
		if !known {
			all = []string{"unknown"}
		}
		expect.Equal(t, strings.Join(all, ", "), c.want, "%s", name)
	}
}

// TestLists: the events of a list are read like those of lines, each with its number; a list with something else counts for nothing.
func TestLists(t *testing.T) {
	const begin = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":`
	bare := strings.Replace(event, `"kind":"Event","apiVersion":"audit.k8s.io/v1",`, "", 1)
	for name, c := range map[string]struct {
		line  string
		items []int
		err   string
	}{
		"RPL-4/a list":                  {begin + `[` + event + `, ` + bare + `]}`, []int{1, 2}, ""},
		"RPL-4/an empty list":           {begin + `[]}`, nil, ""},
		"RPL-4/null":                    {begin + `null}`, nil, ""},
		"RPL-4/no items":                {`{"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`, nil, ""},
		"RPL-4/items before the kind":   {`{"items":[` + bare + `],"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`, []int{1}, ""},
		"RPL-4/another kind in it":      {begin + `[` + event + `,{"kind":"Status"}]}`, nil, "is no event"},
		"RPL-4/a number in it":          {begin + `[1]}`, nil, "is no event"},
		"RPL-4/items that are a text":   {begin + `"x"}`, nil, "is no event"},
		"RPL-4/a list of other objects": {`{"kind":"EventList","apiVersion":"v1","items":[` + bare + `]}`, nil, "is no event"},
	} {
		var items []int
		err := decode([]byte(c.line), func(e *Event) { items = append(items, e.Item) })
		if diff := cmp.Diff(c.items, items); diff != "" || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v: %s", name, err, diff)
		}
	}
	events, summary, err := read(t, Source{Files: []string{"-"}, Stdin: strings.NewReader(begin + `[` + bare + `,` + bare + "]}\n" + event)})
	if err != nil || len(events) != 3 || events[1].Place() != "stdin line 1 item 2" || events[2].Place() != "stdin line 2" || summary.Lines != 2 {
		t.Errorf("RPL-4: got %d events, %+v, %v", len(events), summary, err)
	}
}

// TestRequestsOnce: a long request counts when it starts, and once.
func TestRequestsOnce(t *testing.T) {
	start := Event{ID: "1", Received: "a", Stage: "ResponseStarted"}
	end := start
	end.Stage = "ResponseComplete"
	other := end
	other.Received = "b" // The client has sent the same ID once more.
	unknown := Event{Stage: "ResponseStarted"}
	r := NewRequests()
	var got []bool
	for _, e := range []*Event{&start, &start, &other, &end, &end, &unknown} {
		got = append(got, r.Counts(e))
	}
	expect.DeepEqual(t, got, []bool{true, false, true, false, true, false}, "RPL-11")
	at := func(seconds int) string { return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339Nano) }
	r.Wrote(&Event{Received: at(9), Reached: at(10)})
	r.Wrote(&Event{Received: at(1), Reached: at(2)})
	for name, c := range map[string]struct {
		from, to int
		want     bool
	}{
		"RPL-11/overtaken": {9, 60, true}, "RPL-11/after it": {10, 60, false}, "RPL-11/short": {9, 9, false},
	} {
		expect.Equal(t, r.Overtaken(&Event{Received: at(c.from), Reached: at(c.to)}), c.want, "%s", name)
	}
}

// An item that says nothing is no event: three bytes would take a hundred times as much once they are decoded.
func TestEmptyItems(t *testing.T) {
	seen := 0
	line := `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{"verb":"get"},` + strings.Repeat("{},", 1<<20) + `{}]}`
	err := decode([]byte(line), func(*Event) { seen++ })
	expect.True(t, err != nil && seen == 0, "RPL-4: %d events, error %v", seen, err)
}

// TestEvent_Stages: a request is answered at its end, or when a long one has begun (RPL-4, RPL-11).
func TestEvent_Stages(t *testing.T) {
	for stage, want := range map[string]struct{ answered, over bool }{
		"RequestReceived": {}, "ResponseStarted": {answered: true}, "ResponseComplete": {answered: true, over: true}, "Panic": {answered: true, over: true},
	} {
		if e := (Event{Stage: stage}); e.Answered() != want.answered || e.Over() != want.over {
			t.Errorf("RPL-4: %s: answered %v, over %v, want %+v", stage, e.Answered(), e.Over(), want)
		}
	}
}

// TestFollowed_Count: a write that changed nothing is counted by the reason why.
func TestFollowed_Count(t *testing.T) {
	var f Followed
	f.Count(&Event{Verb: "create"}, true)
	f.Count(&Event{Verb: "patch"}, false)
	f.Count(&Event{Verb: "update"}, false)
	f.Count(&Event{Verb: "deletecollection"}, true)
	f.Count(&Event{Verb: "deletecollection"}, false)
	expect.DeepEqual(t, f, Followed{Writes: 2, Bodiless: 2, Unlisted: 1}, "RPL-10")
}
