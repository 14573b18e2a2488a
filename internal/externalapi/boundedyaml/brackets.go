package boundedyaml

import "iter"

// Brackets yields the offset of each bracket of JSON that opens or closes a list or an object, and how many are open
// after it. Brackets in strings are skipped.
func Brackets(text []byte) iter.Seq2[int, int] {
	return func(yield func(offset, open int) bool) {
		open, quoted := 0, false
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case quoted && c == '\\':
				i++
				continue
			case c == '"':
				quoted = !quoted
				continue
			case quoted:
				continue
			case c == '{' || c == '[':
				open++
			case c == '}' || c == ']':
				open--
			default:
				continue
			}
			if !yield(i, open) {
				return
			}
		}
	}
}
