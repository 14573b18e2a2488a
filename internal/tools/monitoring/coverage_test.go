package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// withoutAlert are the rows of a page: metrics that no rule has, and why.
var withoutAlert = regexp.MustCompile("(?m)^\\| ((?:`[a-z0-9_]+`(?:, )?)+) \\| ([^|]{20,}) \\|$")

// TestBadStatesHaveAlerts holds that each counter and gauge is in a rule, or in the table of the page that says why not, and that each is in a panel.
func TestBadStatesHaveAlerts(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := os.ReadFile(filepath.Join(root, "docs", "internals", "metrics-without-an-alert.md"))
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, row := range withoutAlert.FindAllStringSubmatch(string(reasons), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			explained[strings.Trim(name, "`")] = true
		}
	}
	seen := map[string]bool{}
	var rules, panels []string
	for _, rule := range allRules(t) {
		rules = append(rules, rule.Expr)
	}
	for _, d := range dashboards(t) {
		for _, expressions := range d.expressions() {
			panels = append(panels, expressions...)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^- `([a-z0-9_]+)[^`*]*`: ").FindAllStringSubmatch(string(content), -1) {
		name := row[1]
		if seen[name] {
			continue
		}
		seen[name] = true
		has := func(expressions []string) bool {
			return slices.ContainsFunc(expressions, func(e string) bool { return regexp.MustCompile(`(^|\W|_)` + name + `\b`).MatchString(e) })
		}
		if alerts := has(rules); alerts == explained[name] {
			t.Errorf("OBS-37: %s is in a rule: %t, and docs/internals/metrics-without-an-alert.md explains why not: %t", name, alerts, explained[name])
		}
		if !has(panels) && !has(rules) && !strings.HasSuffix(name, "_timestamp_seconds") {
			t.Errorf("OBS-37: %s is in no panel", name)
		}
	}
	for name := range explained {
		if !seen[name] {
			t.Errorf("OBS-37: %s is explained, and is no metric", name)
		}
	}
}

// TestPanelsLeadToRunbooks holds that a panel with the metric of an alert has a link to the runbook of an alert.
func TestPanelsLeadToRunbooks(t *testing.T) {
	alerting := map[string]bool{}
	for _, rule := range alerts(t) {
		for _, name := range metricsOf(t, rule.Expr) {
			if name != "espalier_build_info" && name != "espalier_target_watches" { // These select instances.
				alerting[name] = true
			}
		}
	}
	for file, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				expression := strings.NewReplacer("$__rate_interval", "5m").Replace(target.Expr)
				if slices.ContainsFunc(metricsOf(t, expression), func(name string) bool { return alerting[name] }) && len(panel.Links) == 0 {
					t.Errorf("OBS-37: %s: %q shows the metric of an alert, and leads to no runbook", file, panel.Title)
				}
			}
		}
	}
}

// command is one of kubectl in a runbook, in a block or in a sentence.
var command = regexp.MustCompile("kubectl [^`\n]*")

// anywhere are commands that need no namespace: about kinds without any, or about all namespaces.
var anywhere = regexp.MustCompile(`^kubectl (get|describe) (--raw|csr|apiservices?|nodes?|namespaces?|crds?|validatingwebhookconfigurations|mutatingwebhookconfigurations|clusterroles?|seeds?)\b|^kubectl (auth|config|version|api-resources)\b| -A\b`)

// TestCommandsNameTheNamespace holds that each command of a runbook that needs a namespace names it, and has nothing that is only a part of a command.
func TestCommandsNameTheNamespace(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, runbooks, "*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatal(len(pages), err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range command.FindAllString(string(content), -1) {
			if !strings.Contains(line, " -n ") && !anywhere.MatchString(line) {
				t.Errorf("OBS-37: %s names no namespace: %s", filepath.Base(page), line)
			}
		}
	}
}
