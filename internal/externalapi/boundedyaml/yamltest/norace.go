//go:build !race

package yamltest

const raced = false
