package lifecycle

import (
	"fmt"
	"strings"
)

// Markdown returns the table as docs/internals/engine-memory.md shows it.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| in phase | event | if | then | phase after | command |\n|---|---|---|---|---|---|\n")
	for i := range table {
		row := &table[i]
		phases, condition, effect, to := join(row.in), "", "", "the same"
		if phases == "" {
			phases = "any"
		}
		if row.when != nil {
			condition = row.when.text
		}
		if row.then != nil {
			effect = row.then.text
		}
		if row.to != stay {
			to = row.to.String()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", phases, join(row.on), condition, effect, to, join(row.do))
	}
	return b.String()
}

func join[T fmt.Stringer](values []T) string {
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, value.String())
	}
	return strings.Join(texts, ", ")
}
