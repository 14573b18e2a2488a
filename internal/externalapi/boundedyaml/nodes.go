package boundedyaml

import "bytes"

// JSONNodes returns at least the number of nodes of JSON values, and at most three times that.
func JSONNodes(stream []byte) int {
	nodes, quoted := 1, false
	for i := 0; i < len(stream); i++ {
		switch c := stream[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',' || c == ':' || c == '[':
			nodes++
		case c == '{':
			nodes += 2
		}
	}
	return nodes
}

// JSONGrowth returns how much a text grows in JSON, where these characters are escaped.
func JSONGrowth(text []byte) int {
	return 5 * (bytes.Count(text, []byte("<")) + bytes.Count(text, []byte(">")) + bytes.Count(text, []byte("&")))
}

// YAMLNodes returns at least the number of nodes of a YAML document, aliases not expanded, without parsing it: every
// node needs its own line or indicator. The text of block scalars is not counted where it certainly is text.
//
// It leaves out only lines that are text in every document: those below "key: |" that are indented deeper than the
// key, while no flow style can be open. If the line with the key is not what it seems to be (but part of another
// scalar, for example), the lines below are part of the same scalar, or the parser stops there with an error.
func YAMLNodes(document []byte) int {
	nodes, certain, text := 1, true, -1 // text is the column of the key of a block scalar.
	for len(document) > 0 {
		var line []byte
		line, document = cutLine(document)
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		if indent == len(line) || text >= 0 && indent > text {
			continue
		}
		text = -1
		count, closed := lineNodes(line, certain)
		nodes += count
		if certain = certain && closed; certain {
			text = blockScalar(line)
		}
	}
	return nodes
}

// cutLine cuts at any line break of YAML 1.1.
func cutLine(text []byte) (line, rest []byte) {
	for i, c := range text {
		size := 0
		switch {
		case c == '\n' || c == '\r':
			size = 1
		case c == 0xc2 && bytes.HasPrefix(text[i:], []byte("\u0085")):
			size = 2
		case c == 0xe2 && (bytes.HasPrefix(text[i:], []byte("\u2028")) || bytes.HasPrefix(text[i:], []byte("\u2029"))):
			size = 3
		}
		if size > 0 {
			return text[:i], text[i+size:]
		}
	}
	return text, nil
}

// lineNodes counts the characters that may begin a node. It also reports whether flow style is certainly closed after
// the line if none was open before: all brackets are closed, and none of them can be in quotes or a comment.
func lineNodes(line []byte, noneBefore bool) (nodes int, closed bool) {
	nodes = 1
	depth, lowest, commas, brackets := 0, 0, 0, false
	for i, c := range line {
		switch c {
		case ',':
			commas++
		case ':':
			nodes++
			if i+1 == len(line) {
				nodes++ // A mapping may follow, which costs more than a scalar.
			}
		case '[':
			nodes++
			depth, brackets = depth+1, true
		case '{':
			nodes += 3
			depth, brackets = depth+1, true
		case ']', '}':
			depth, brackets = depth-1, true
			lowest = min(lowest, depth)
		case '-', '?':
			if i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t' {
				nodes += 2 // A list, or the mapping in it.
				if c == '?' {
					nodes++
				}
			}
		}
	}
	if brackets || !noneBefore {
		nodes += 2 * commas // In flow style only: a key of a mapping, and an absent value.
	}
	return nodes, !brackets || depth == 0 && lowest == 0 && !bytes.ContainsAny(line, "\"'#")
}

// blockScalar returns the column of the key of a block scalar whose text begins with the next line; -1 if that is not
// certain.
func blockScalar(line []byte) int {
	line = bytes.TrimRight(line, " ")
	header := bytes.TrimRight(line, "+-0123456789")
	before, found := bytes.CutSuffix(header, []byte(": |"))
	if !found {
		before, found = bytes.CutSuffix(header, []byte(": >"))
	}
	if !found || bytes.ContainsAny(before, "#\t") {
		return -1
	}
	column := 0
	for column < len(before) && (before[column] == ' ' || bytes.IndexByte([]byte("-?:"), before[column]) >= 0 && column+1 < len(before) && before[column+1] == ' ') {
		column++
	}
	return column
}
