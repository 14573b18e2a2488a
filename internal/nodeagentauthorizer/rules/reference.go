package rules

import (
	"fmt"
	"strings"
)

// Reference is the reference page of the rules, made from the table.
func Reference() string {
	var out strings.Builder
	out.WriteString(`# Rules of the node-agent authorizer

Generated from the table of rules; ` + "`make generate`" + ` writes it anew.

An agent is a user ` + "`" + userPrefix + "<machine>`" + ` in group ` + "`" + group + "`" + `; the rest of the name is that of its Machine, or of its Node where there are no
Machines. About others there is no opinion. Whatever an agent asks that is not in the table is denied, and so is what cannot be decided because something cannot be read.

| rule | resource | verbs | subresources | objects |
|---|---|---|---|---|
`)
	for _, r := range rules {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", r.id, strings.TrimSuffix(r.resource+"."+r.group, "."), strings.Join(r.verbs, ", "), strings.Join(r.subresources, ", "),
			strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(r.says))
	}
	out.WriteString(`
- The own Node is the one that the label ` + "`node`" + ` of the Machine names.
  Without it, or while the Node does not exist, only the common Secrets, the own configuration, events, certificate signing requests, and the list and the watch of Nodes are open.
- The configuration is the Secret that the label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` of the Machine's node template names; what it refers to for single hosts is open for the host in the Machine's label ` + "`node`" + `.
  Labels of the Node, which the agent may write, decide nothing.
- An agent whose Machine is gone has no right to any Secret and sees no Node.
- The Lease for roll-outs has the name of the configuration.

Where there are no Machines, the Node's label ` + "`worker.gardener.cloud/gardener-node-agent-secret-name`" + ` names the configuration:

- It counts only if the Secret has the label ` + "`worker.gardener.cloud/pool`" + `; a later one must be of the pool that the Node's label of that name had when the authorizer first saw it, until the Node goes.
- The host is the one that the label ` + "`kubernetes.io/hostname`" + ` had then; without it nothing for single hosts is open.
- While the Node does not exist yet, the configurations of all pools are open, with what they refer to for the host of the agent's name.
- The Lease for roll-outs counts only if its name starts with ` + "`gardener-node-agent-`" + `.
`)
	return out.String()
}
