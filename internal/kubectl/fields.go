package kubectl

import (
	"regexp"
	"strings"
	"unicode"
)

// oneKey begins fields whose whole rest is a key of a map, dots included.
var oneKey = regexp.MustCompile(`^(.*?metadata\.(?:labels|annotations)|data|stringData|binaryData)\.(.+)$`)

// fieldStep is one step of a field as why prints it: a key, an item by its name, or an item by its index.
var fieldStep = regexp.MustCompile(`\[[^\]]*\]|[^.\[]+`)

// pointersOf returns pointers for fields in the form of why, such as spec.template.spec.containers[web].image; pointers stay as they are.
func pointersOf(fields string) string {
	texts := strings.FieldsFunc(fields, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, text := range texts {
		if !strings.HasPrefix(text, "/") {
			texts[i] = pointerOf(text)
		}
	}
	return strings.Join(texts, ",")
}

func pointerOf(field string) string {
	key := ""
	if match := oneKey.FindStringSubmatch(field); match != nil {
		field, key = match[1], match[2]
	}
	var b strings.Builder
	step := func(text string) {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(text))
	}
	for _, part := range fieldStep.FindAllString(field, -1) {
		name, isItem := strings.CutPrefix(part, "[")
		name = strings.TrimSuffix(name, "]")
		if isItem && strings.Trim(name, "0123456789") != "" {
			name = "[name=" + name + "]"
		}
		step(name)
	}
	if key != "" {
		step(key)
	}
	return b.String()
}
