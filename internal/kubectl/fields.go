package kubectl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// oneKey begins fields whose whole rest is a key of a map, dots included.
var oneKey = regexp.MustCompile(`^(.*?metadata\.(?:labels|annotations)|data|stringData|binaryData)\.(.+)$`)

// plainField is a step that cannot be a part of a longer key: a name of a field.
var plainField = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// pointersOf returns pointers for fields in the form of why, such as spec.template.spec.containers[web].image; pointers stay as they are.
// As keys may have dots, live decides where a step ends; it is nil if the fields are those of several objects.
func pointersOf(fields string, live map[string]any) (string, error) {
	texts := strings.FieldsFunc(fields, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for i, text := range texts {
		if strings.HasPrefix(text, "/") {
			continue
		}
		steps, found := stepsOf(text, text, live)
		if !found {
			return "", fmt.Errorf("--fields: %s is not in the object, or not clear: a pointer is, such as /spec/replicas", text)
		}
		texts[i] = ""
		for _, step := range steps {
			texts[i] += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
		}
	}
	return strings.Join(texts, ","), nil
}

// stepsOf returns the steps of the rest of a field, each the longest key of the live value that fits.
func stepsOf(field, rest string, live any) ([]string, bool) {
	if rest == "" {
		return nil, true
	}
	if strings.HasPrefix(rest, "[") {
		item, after, closed := strings.Cut(rest[1:], "]")
		if !closed || item == "" {
			return nil, false
		}
		name, below := itemOf(item, live)
		return onwards(field, name, after, below)
	}
	entries, isMap := live.(map[string]any)
	longest, found := "", false
	for key, value := range entries {
		after, fits := strings.CutPrefix(rest, key)
		fits = fits && (after == "" || isContainer(value) && (after[0] == '.' || after[0] == '['))
		if fits && len(key) >= len(longest) {
			longest, found = key, true
		}
	}
	switch {
	case found:
		return onwards(field, longest, rest[len(longest):], entries[longest])
	case live != nil && !isMap:
		return nil, false
	}
	if match := oneKey.FindStringSubmatch(field); match != nil && match[2] == rest {
		return []string{rest}, true
	}
	end := strings.IndexAny(rest+".", ".[")
	if !plainField.MatchString(rest[:end]) {
		return []string{rest}, !strings.ContainsAny(rest, ".[/")
	}
	return onwards(field, rest[:end], rest[end:], nil)
}

// onwards returns a step and those of the text after it.
func onwards(field, step, after string, live any) ([]string, bool) {
	rest := strings.TrimPrefix(after, ".")
	if rest == "" && after != "" {
		return nil, false
	}
	steps, found := stepsOf(field, rest, live)
	return append([]string{step}, steps...), found
}

// itemOf returns the step of a pointer to an item of a list, by its name or its index, and the item if it is there.
func itemOf(item string, live any) (string, any) {
	items, _ := live.([]any)
	if index, err := strconv.Atoi(item); err == nil {
		if index >= 0 && index < len(items) {
			return item, items[index]
		}
		return item, nil
	}
	for _, each := range items {
		if entries, _ := each.(map[string]any); entries["name"] == item {
			return "[name=" + item + "]", each
		}
	}
	return "[name=" + item + "]", nil
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
