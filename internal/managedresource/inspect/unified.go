package inspect

import (
	"fmt"
	"strings"
)

// contextLines is the number of equal lines around a change, as in diff -u.
const contextLines = 3

// mostCells bounds the table in which the longest common part of two texts is looked for, and with it time and memory:
// 4 million cells are two texts of 2000 lines that differ from the first line to the last, and take 16 MiB. Beyond that
// all lines between the first and the last change are shown.
const mostCells = 4 << 20

// Unified returns the difference of two texts as diff -u prints it, without its two lines of file names; "" if they are
// the same.
func Unified(before, after string) string {
	edits := editsOfLines(lines(before), lines(after))
	var b strings.Builder
	for _, hunk := range hunks(edits) {
		hunk.print(&b)
	}
	return b.String()
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// edit is a line that stays (' '), goes ('-') or comes ('+').
type edit struct {
	mark byte
	line string
}

func editsOfLines(before, after []string) []edit {
	var edits []edit
	start := 0
	for start < len(before) && start < len(after) && before[start] == after[start] {
		edits = append(edits, edit{' ', before[start]})
		start++
	}
	endBefore, endAfter := len(before), len(after)
	for endBefore > start && endAfter > start && before[endBefore-1] == after[endAfter-1] {
		endBefore, endAfter = endBefore-1, endAfter-1
	}
	edits = append(edits, editsBetween(before[start:endBefore], after[start:endAfter])...)
	for _, line := range before[endBefore:] {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

// editsBetween keeps the longest common part.
func editsBetween(before, after []string) []edit {
	var edits []edit
	i, j := 0, 0
	if len(before)*len(after) <= mostCells {
		for common := commonParts(before, after); i < len(before) && j < len(after); {
			switch {
			case before[i] == after[j]:
				edits = append(edits, edit{' ', before[i]})
				i, j = i+1, j+1
			case common[i+1][j] >= common[i][j+1]:
				edits = append(edits, edit{'-', before[i]})
				i++
			default:
				edits = append(edits, edit{'+', after[j]})
				j++
			}
		}
	}
	for ; i < len(before); i++ {
		edits = append(edits, edit{'-', before[i]})
	}
	for ; j < len(after); j++ {
		edits = append(edits, edit{'+', after[j]})
	}
	return edits
}

// commonParts has the length of the longest common part of what is left from each pair of lines on.
func commonParts(before, after []string) [][]int32 {
	cells := make([]int32, (len(before)+1)*(len(after)+1))
	common := make([][]int32, len(before)+1)
	for i := range common {
		common[i] = cells[i*(len(after)+1) : (i+1)*(len(after)+1)]
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// hunk is a run of edits, and where it begins in both texts.
type hunk struct {
	before, after int
	edits         []edit
}

// hunks are the changes with the lines around them; those that are close to each other are one.
func hunks(edits []edit) []hunk {
	var all []hunk
	before, after, lastChange := 1, 1, -1
	for i, e := range edits {
		if e.mark != ' ' {
			from := max(0, i-contextLines)
			if lastChange >= 0 && from <= lastChange+contextLines+1 {
				h := &all[len(all)-1]
				h.edits = append(h.edits, edits[lastChange+1:i+1]...)
			} else {
				if lastChange >= 0 {
					all[len(all)-1].close(edits, lastChange)
				}
				all = append(all, hunk{before - (i - from), after - (i - from), append([]edit{}, edits[from:i+1]...)})
			}
			lastChange = i
		}
		if e.mark != '+' {
			before++
		}
		if e.mark != '-' {
			after++
		}
	}
	if lastChange >= 0 {
		all[len(all)-1].close(edits, lastChange)
	}
	return all
}

// close adds the lines that stand behind the last change.
func (h *hunk) close(edits []edit, lastChange int) {
	h.edits = append(h.edits, edits[lastChange+1:min(len(edits), lastChange+1+contextLines)]...)
}

func (h *hunk) print(b *strings.Builder) {
	var old, now int
	for _, e := range h.edits {
		if e.mark != '+' {
			old++
		}
		if e.mark != '-' {
			now++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(h.before, old), span(h.after, now))
	for _, e := range h.edits {
		b.WriteByte(e.mark)
		b.WriteString(e.line + "\n")
	}
}

// span is a range of lines as diff writes it: an empty one begins a line earlier.
func span(start, length int) string {
	switch length {
	case 0:
		return fmt.Sprintf("%d,0", start-1)
	case 1:
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, length)
}
