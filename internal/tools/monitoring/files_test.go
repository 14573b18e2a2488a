package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	root     = "../../.."
	folder   = root + "/deploy/monitoring"
	runbooks = "docs/operations/runbooks"
	// published is where people who are alerted find the runbooks.
	published = "https://github.com/espalier-project/espalier/blob/main/" + runbooks + "/"
)

var promql = parser.NewParser(parser.Options{})

func files(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(all) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, folder, err)
	}
	return all
}

// alerts are the alerts of all files of rules, by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	all := map[string]rulefmt.Rule{}
	for _, rule := range allRules(t) {
		if rule.Record != "" {
			continue
		}
		if _, twice := all[rule.Alert]; twice || rule.Alert == "" {
			t.Errorf("%q is not the name of one alert", rule.Alert)
		}
		all[rule.Alert] = rule
	}
	return all
}

// allRules are the rules of all files.
func allRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	var all []rulefmt.Rule
	for _, file := range files(t, "rules/*.yaml") {
		groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, promql, promslog.NewNopLogger())
		for _, err := range errs {
			t.Error(err)
		}
		if groups == nil {
			continue
		}
		for _, group := range groups.Groups {
			all = append(all, group.Rules...)
		}
	}
	return all
}

// reaches are the values of the label visibility that an Alertmanager of Gardener sends to those who run the landscape; it drops every other alert.
var reaches = regexp.MustCompile("^(?:all|operator)$")

// whereabouts are templates of the namespace that an alert is about.
var whereabouts = regexp.MustCompile(`\$labels\.namespace\b`)

// TestAlertsSayWhatToDo holds that every alert has the labels by which Gardener's Alertmanagers route, group and inhibit, says in which namespace what is
// wrong, and has a runbook, and that every runbook has an alert.
func TestAlertsSayWhatToDo(t *testing.T) {
	wanted := map[string]bool{"README.md": true}
	for name, rule := range alerts(t) {
		page := runbooks + "/" + name + ".md"
		wanted[name+".md"] = true
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s has severity %q", name, rule.Labels["severity"])
		}
		// Alerts of type shoot are held back while a shoot's VPN is broken.
		if !reaches.MatchString(rule.Labels["visibility"]) || rule.Labels["type"] != "seed" || rule.Labels["service"] == "" {
			t.Errorf("%s has labels %v, with which it reaches nobody", name, rule.Labels)
		}
		if !whereabouts.MatchString(rule.Annotations["summary"]) {
			t.Errorf("%s does not say in which namespace: %s", name, rule.Annotations["summary"])
		}
		if len(rule.Annotations["description"]) < 20 || rule.Annotations["description"] == rule.Annotations["summary"] {
			t.Errorf("%s has description %q", name, rule.Annotations["description"])
		}
		if rule.Annotations["runbook_url"] != published+name+".md" {
			t.Errorf("%s has runbook %s", name, rule.Annotations["runbook_url"])
		}
		content, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Error(err)
		} else if !strings.HasPrefix(string(content), "# "+name+"\n") {
			t.Errorf("the title of %s is not the name of the alert", page)
		}
	}
	there, err := filepath.Glob(filepath.Join(root, runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range there {
		if !wanted[filepath.Base(page)] {
			t.Errorf("%s is the runbook of no alert", page)
		}
	}
}

// datasource is where a panel or a variable asks.
type datasource struct{ Type, UID string }

// chosen is the data source that the user of a dashboard chooses by the variable of that name.
var chosen = datasource{"prometheus", "${datasource}"}

// dashboard is what is looked at of a dashboard of Grafana.
type dashboard struct {
	UID   string `json:"uid"`
	Title string `json:"title"`
	// SchemaVersion is that of Grafana's dashboards in the form before version 2, in which panels are a list.
	SchemaVersion int `json:"schemaVersion"`
	Templating    struct {
		List []struct {
			Name       string          `json:"name"`
			Type       string          `json:"type"`
			Datasource datasource      `json:"datasource"`
			Query      json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID          int    `json:"id"`
		Type        string `json:"type"`
		Title       string `json:"title"`
		Description string `json:"description"`
		Datasource  datasource
		FieldConfig struct {
			Defaults struct {
				Unit string `json:"unit"`
			} `json:"defaults"`
		} `json:"fieldConfig"`
		GridPos struct{ H, W, X, Y int }
		Links   []struct {
			Title string `json:"title"`
			URL   string `json:"url"`
		} `json:"links"`
		Targets []struct {
			RefID        string `json:"refId"`
			Expr         string `json:"expr"`
			LegendFormat string `json:"legendFormat"`
		} `json:"targets"`
	} `json:"panels"`
}

// expressions are those of a dashboard, by the title of the panel, with a value for each variable.
func (d *dashboard) expressions() map[string][]string {
	all := map[string][]string{}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*", "$job", ".*")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all[panel.Title] = append(all[panel.Title], variables.Replace(target.Expr))
		}
	}
	for _, variable := range d.Templating.List {
		var query struct{ Query string }
		if json.Unmarshal(variable.Query, &query) != nil {
			continue
		}
		if match := labelValues.FindStringSubmatch(query.Query); match != nil {
			all["variable "+variable.Name] = append(all["variable "+variable.Name], variables.Replace(match[1]))
		}
	}
	return all
}

var labelValues = regexp.MustCompile(`^label_values\((.*), \w+\)$`)

func dashboards(t *testing.T) map[string]*dashboard {
	t.Helper()
	all := map[string]*dashboard{}
	for _, file := range files(t, "dashboards/*.json") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := &dashboard{}
		if err := json.Unmarshal(content, d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// TestDashboards holds that panels can be told apart, say what they show and in which unit, do not overlap, and ask what Prometheus understands.
func TestDashboards(t *testing.T) {
	uids := map[string]string{}
	for file, d := range dashboards(t) {
		if d.Panels[0].Title != "Objectives" || d.Panels[1].Title != "Error budget left, 30 days" {
			t.Errorf("%s begins with %q, %q, not with the objectives", file, d.Panels[0].Title, d.Panels[1].Title)
		}
		if d.Title == "" || d.UID == "" || uids[d.UID] != "" {
			t.Errorf("%s: title %q, uid %q", file, d.Title, d.UID)
		}
		uids[d.UID] = file
		if d.SchemaVersion < 39 || len(d.Templating.List) == 0 || d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Type != "datasource" {
			t.Errorf("%s: schema %d, variables %v", file, d.SchemaVersion, d.Templating.List)
		}
		for _, variable := range d.Templating.List {
			if variable.Type == "query" && variable.Datasource != chosen {
				t.Errorf("%s: variable %s asks %v", file, variable.Name, variable.Datasource)
			}
		}
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, panel := range d.Panels {
			if ids[panel.ID] || panel.Title == "" {
				t.Errorf("%s: panel %d %q", file, panel.ID, panel.Title)
			}
			ids[panel.ID] = true
			for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
				for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
						t.Fatalf("%s: %q is where %q is, or beside the page", file, panel.Title, other)
					}
					taken[[2]int{x, y}] = panel.Title
				}
			}
			if panel.Type == "row" {
				continue
			}
			if panel.Type == "stat" && len(panel.Links) == 0 {
				t.Errorf("%s: %q leads to no runbook", file, panel.Title)
			}
			for _, link := range panel.Links {
				name, is := strings.CutPrefix(link.URL, published)
				if _, err := os.Stat(filepath.Join(root, runbooks, name)); !is || err != nil || name != link.Title+".md" {
					t.Errorf("%s: %q leads to %s, %s: %v", file, panel.Title, link.Title, link.URL, err)
				}
			}
			if panel.Datasource != chosen || panel.FieldConfig.Defaults.Unit == "" {
				t.Errorf("%s: panel %q asks %v, and has unit %q", file, panel.Title, panel.Datasource, panel.FieldConfig.Defaults.Unit)
			}
			refs := map[string]bool{}
			for _, target := range panel.Targets {
				if refs[target.RefID] || target.RefID == "" || target.LegendFormat == "" {
					t.Errorf("%s: panel %q has target %q with legend %q", file, panel.Title, target.RefID, target.LegendFormat)
				}
				refs[target.RefID] = true
			}
			if panel.Description == "" || len(panel.Targets) == 0 {
				t.Errorf("%s: panel %q shows nothing or does not say what", file, panel.Title)
			}
		}
		for where, expressions := range d.expressions() {
			for _, expression := range expressions {
				if _, err := promql.ParseExpr(expression); err != nil {
					t.Errorf("%s: %s: %s: %v", file, where, expression, err)
				}
			}
		}
	}
}
