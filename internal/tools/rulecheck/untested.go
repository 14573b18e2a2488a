package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// untested is the page with the rules that no test names, and the reasons. Rules for parts that are not built yet are
// listed by their prefix.
const untested = "untested.md"

// An explanation is for a rule, MR-4, or for all with a prefix, GC-*.
var explained = regexp.MustCompile(id + `|(?:[A-Z]{1,4}-){1,2}\*`)

// readExplanations returns the first cells of the page's tables.
func readExplanations(page string) ([]string, error) {
	content, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	var found []string
	for text := range strings.Lines(string(content)) {
		if cells := strings.Split(text, "|"); len(cells) > 1 && cells[0] == "" {
			found = append(found, explained.FindAllString(cells[1], -1)...)
		}
	}
	return found, nil
}

// covered returns the rules that an explanation is for.
func covered(explanation string, contract *contract) []string {
	prefix, all := strings.CutSuffix(explanation, "*")
	if !all {
		return contract.meant(explanation)
	}
	var rules []string
	for _, id := range contract.ids {
		if strings.HasPrefix(id, prefix) {
			rules = append(rules, id)
		}
	}
	return rules
}

// judge compares the rules with those that tests name and those that are explained.
func judge(out io.Writer, contract *contract, named map[string]bool, explanations []string) error {
	why := map[string]string{}
	var outdated []string
	for _, explanation := range explanations {
		needed := false
		for _, rule := range covered(explanation, contract) {
			why[rule] = explanation
			needed = needed || !named[rule]
		}
		if !needed {
			outdated = append(outdated, explanation)
		}
	}
	var single, whole, unexplained []string
	count := map[string]int{}
	for _, rule := range contract.ids {
		explanation := why[rule]
		switch {
		case named[rule]:
		case explanation == "":
			unexplained = append(unexplained, rule)
		case strings.HasSuffix(explanation, "*"):
			if count[explanation] == 0 {
				whole = append(whole, explanation)
			}
			count[explanation]++
		default:
			single = append(single, rule)
		}
	}
	notBuilt := 0
	for i, explanation := range whole {
		notBuilt += count[explanation]
		whole[i] = fmt.Sprintf("%s (%d)", explanation, count[explanation])
	}
	_, err := fmt.Fprintf(out, "%d rules, %d named by tests, %d explained in docs/internals/contract/%s\nnot named by any test, for the reasons given there: %s\n", len(contract.ids), len(contract.ids)-len(single)-notBuilt-len(unexplained), len(single)+notBuilt, untested,
		strings.Join(append(single, whole...), " "))
	if len(unexplained) > 0 {
		err = errors.Join(err, fmt.Errorf("neither named by a test nor explained: %s", strings.Join(unexplained, " ")))
	}
	if len(outdated) > 0 {
		err = errors.Join(err, fmt.Errorf("explained in docs/internals/contract/%s, but defined nowhere or named by tests: %s", untested, strings.Join(outdated, " ")))
	}
	return err
}
