package harness

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/gen/reference"
)

var (
	typeLine   = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? \S+$`)
	labelName  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"`)
)

// Shown returns the names of the metrics that the process shows, and what of them is not as the page about metrics says: an unknown name, another
// type, a label more.
func (p *Process) Shown(page []reference.Metric) (names, wrong []string, err error) {
	status, text := p.Get(p.Metrics, "/metrics")
	if status != http.StatusOK {
		return nil, nil, fmt.Errorf("%d %s", status, text)
	}
	var metric *reference.Metric
	for _, line := range strings.Split(text, "\n") {
		if typed := typeLine.FindStringSubmatch(line); typed != nil {
			names = append(names, typed[1])
			i := slices.IndexFunc(page, func(m reference.Metric) bool { return m.Name == typed[1] })
			metric = nil
			switch {
			case i >= 0 && page[i].Type == typed[2]:
				metric = &page[i]
			case i >= 0:
				wrong = append(wrong, fmt.Sprintf("%s is a %s, not a %s", typed[1], typed[2], page[i].Type))
			case !slices.ContainsFunc(reference.Libraries, func(l reference.Library) bool { return strings.HasPrefix(typed[1], l.Prefix) }):
				wrong = append(wrong, typed[1]+" is unknown")
			}
			continue
		}
		sample := sampleLine.FindStringSubmatch(line)
		if sample == nil || metric == nil {
			continue
		}
		for _, label := range labelName.FindAllStringSubmatch(sample[2], -1) {
			if label[1] != "le" && !slices.Contains(metric.Labels, label[1]) {
				wrong = append(wrong, fmt.Sprintf("%s has a label %s", metric.Name, label[1]))
			}
		}
	}
	return names, wrong, nil
}
