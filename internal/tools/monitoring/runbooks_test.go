package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pasted are the command and the query of a runbook.
var pasted = regexp.MustCompile("(?s)\n## Paste\n\n```sh\n([^`]*)\n```\n\n```promql\n([^`]*)\n```\n\n## Do\n")

// TestRunbooksArePasted holds that each runbook has one command, for a namespace, and one query that Prometheus understands, both to be pasted: what
// differs from one alert to the other are variables by the names of its labels.
func TestRunbooksArePasted(t *testing.T) {
	k := everyMetric(t)
	variable := regexp.MustCompile(`"[^"]*\$([A-Z_]+)"`)
	for name, rule := range alerts(t) {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join(root, runbooks, name+".md"))
			if err != nil {
				t.Fatal(err)
			}
			parts := pasted.FindStringSubmatch(string(content))
			if parts == nil {
				t.Fatal("there is no section Paste with a command and a query before the section Do")
			}
			command, query := parts[1], parts[2]
			if strings.Contains(command, "\n") || strings.Contains(command, "<") || !regexp.MustCompile(`^kubectl -n "\$[A-Z_]+" (get|describe|logs|top) `).MatchString(command) {
				t.Errorf("the command changes something, is no single one, or has no namespace: %s", command)
			}
			for _, v := range variable.FindAllStringSubmatch(command, -1) {
				label := strings.ToLower(v[1])
				scraped := label == "job" && !strings.Contains(rule.Expr, "kube_") // Each scraped series has a job.
				if !scraped && !strings.Contains(rule.Expr+rule.Annotations["summary"], label) {
					t.Errorf("the alert has no label %s: %s", label, command)
				}
			}
			for _, problem := range k.problems(t, query) {
				t.Errorf("%s: %s", query, problem)
			}
		})
	}
}
