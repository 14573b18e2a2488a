package main

import (
	"fmt"
	"strings"

	nodeagentrules "github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	seedrules "github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// seedRules returns the reference page of the SeedAuthorizer's rules, generated from the table.
func seedRules() string {
	var out strings.Builder
	rules, steps, exceptions := seedrules.SeedReference()
	out.WriteString(`# Rules of the SeedAuthorizer

Generated from the table of rules.

*Always* are verbs that are allowed for any object, *by path* those for named objects that lead to the client's Seed in the
[dependency graph](graph.md); *read* means get, list and watch. Everything else is left to the next authorizer, with a reason.
Rules hold for gardenlets and extensions alike, unless extensions have a rule of their own. *Further* are selectors for
lists and watches of several objects, and special cases.

`)
	writeRules(&out, rules)
	out.WriteString(`
¹ Under ` + "`readScope: All`" + `, the default under profile contract, these can always be read, in any namespace and without a selector.

² Under ` + "`writeScope: Owned`" + ` update, patch and delete of these need a *managed* edge as the first one of the path.

## Steps of a decision

The first step that holds decides; a step without a result ends with no opinion.

`)
	for _, s := range steps {
		fmt.Fprintf(&out, "- %s\n", strings.TrimSuffix(strings.Join(s, ": "), ": no opinion"))
	}
	out.WriteString("\nAn object of a watched kind that the graph has not seen yet is read once before SA-14.\n")
	writeExceptions(&out, exceptions)
	return out.String()
}

// shootRules returns the reference page of the ShootAuthorizer's rules.
func shootRules() string {
	var out strings.Builder
	rules, exceptions, gardenadm := seedrules.ShootReference()
	out.WriteString(`# Rules of the ShootAuthorizer

Generated from the table of rules. Steps and columns are those of the [SeedAuthorizer](seed-authorizer-rules.md);
paths lead to the client's own Shoot, in a [graph](graph.md#self-hosted-shoots) of its own.

`)
	writeRules(&out, rules)
	writeExceptions(&out, append(exceptions,
		[]string{"SH-16b", "gardenlets read the own bootstrap token in kube-system: by the name that follows from the shoot's and a description that " +
			"names the shoot or a ManagedSeed of it"},
		[]string{"SH-16c", "gardenlets delete a bootstrap token whose description names the shoot"},
		[]string{"SH-23", "extensions of a Shoot in namespace garden, of which a ManagedSeed makes the Seed of its name: whatever the SeedAuthorizer " +
			"allows an extension"}))
	out.WriteString("\n## gardenadm (SH-22)\n\n")
	var scopes grouped
	for _, r := range gardenadm {
		scopes.add(r[1]+", "+r[2], r[0])
	}
	for _, scope := range scopes.order {
		fmt.Fprintf(&out, "- %s: %s\n", scope, strings.Join(scopes.values[scope], ", "))
	}
	out.WriteString("\nThe own Shoot is named in the request; a creation carries no name, and ShootRestriction checks the object's.\n")
	return out.String()
}

// grouped has values by key, in the order of the keys.
type grouped struct {
	order  []string
	values map[string][]string
}

func (g *grouped) add(key, value string) {
	if g.values == nil {
		g.values = map[string][]string{}
	}
	if g.values[key] == nil {
		g.order = append(g.order, key)
	}
	g.values[key] = append(g.values[key], value)
}

// writeRules writes a table of rules; those with equal rights share a row.
func writeRules(out *strings.Builder, rules [][]string) {
	out.WriteString("| resources and subresources | always | by path | further |\n|---|---|---|---|\n")
	var rights grouped
	for _, r := range rules {
		rights.add(withRead(r[2])+" | "+withRead(r[3])+" | "+r[4], r[0]+" "+escapeCell(r[1]))
	}
	for _, r := range rights.order {
		fmt.Fprintf(out, "| %s | %s |\n", strings.Join(rights.values[r], "<br>"), r)
	}
}

func writeExceptions(out *strings.Builder, exceptions [][]string) {
	out.WriteString("\n## Special cases\n\nThey allow:\n\n")
	for _, s := range exceptions {
		fmt.Fprintf(out, "- %s: %s\n", s[0], escapeCell(withRead(s[1])))
	}
}

// withRead replaces the verbs get, list and watch of a text by one word.
func withRead(text string) string { return strings.Replace(text, "get, list, watch", "read", 1) }

// nodeAgentRules returns the reference page of the node-agent authorizer's rules, generated from the table.
func nodeAgentRules() string {
	var out strings.Builder
	out.WriteString(`# Rules of the node-agent authorizer

Generated from the table of rules.

An agent is a user ` + "`" + nodeagentrules.UserPrefix + "<machine>`" + ` in group ` + "`" + nodeagentrules.AgentsGroup + "`" + `, named as its Machine, or as its Node where there are no
Machines. About others there is no opinion. An agent is denied everything else, and what a failed read leaves undecided. *Read* means get, list and watch.

| rule | resource and subresources | verbs | objects |
|---|---|---|---|
`)
	for _, r := range nodeagentrules.Reference() {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", r[0], r[1], withRead(r[2]), escapeCell(r[3]))
	}
	out.WriteString(`
- The label ` + "`node`" + ` of the Machine names the own Node.
  Without it only the common Secrets, the own configuration, events, certificate signing requests, and list and watch of Nodes are open.
- The label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` of the Machine's node template names the configuration; its references for single hosts are open for the host in the label ` + "`node`" + `.
  Labels of the Node, which the agent may write, decide nothing.
- An agent whose Machine is gone reads no Secret and no Node.
- The Lease for roll-outs has the name of the configuration.

Where there are no Machines, the Node's label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` names the configuration:

- It counts only if the Secret has the label ` + "`worker.gardener.cloud/pool`" + `; a later one must be of the pool in that label of the Node when the authorizer first saw it, until the Node goes.
- The host is the one of the label ` + "`kubernetes.io/hostname`" + ` then; without it nothing for single hosts is open.
- Without a Node the configurations of all pools are open, with their references for the host of the agent's name.
- The Lease for roll-outs counts only if its name starts with ` + "`gardener-node-agent-`" + `.
`)
	return out.String()
}
