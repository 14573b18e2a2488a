package token

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// kubeconfig is a kubeconfig as the tree that was written, so that a change of the token leaves the rest as it is: order, comments, fields of later
// versions and of plug-ins.
type kubeconfig struct {
	document yaml.Node
}

// maxNodes limits the nodes of a kubeconfig, as they are counted before it is parsed: some five hundred contexts with their users and clusters.
// The tree of a tenant's kubeconfig then takes 12 MiB at most.
const maxNodes = 20_000

// parseKubeconfig parses YAML or JSON, within limits: a tenant may have written it. The error repeats nothing of the content.
func parseKubeconfig(content []byte) (*kubeconfig, error) {
	document, err := boundedyaml.Tree(content, maxNodes)
	switch {
	case errors.Is(err, boundedyaml.ErrEmpty):
		return nil, errNoContext // Nothing in it.
	case errors.Is(err, boundedyaml.ErrSeveral):
		return nil, errors.New("kubeconfig has more than one document")
	case boundedyaml.IsLimit(err):
		return nil, fmt.Errorf("kubeconfig: %w", err)
	case err != nil:
		return nil, syntax(err)
	}
	k := &kubeconfig{*document}
	if len(k.document.Content) == 0 || isNull(k.root()) {
		return nil, errNoContext
	}
	if k.root().Style&yaml.FlowStyle != 0 {
		unfold(&k.document) // JSON; what is written is YAML (TR-23).
	}
	if root := k.root(); root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("cannot unmarshal %s into Go value of type v1.Config", kindOf(root))
	}
	return k, nil
}

var lineOf = regexp.MustCompile(`line \d+`)

func syntax(err error) error {
	if line := lineOf.FindString(err.Error()); line != "" {
		return fmt.Errorf("kubeconfig is neither YAML nor JSON: %s", line)
	}
	return errors.New("kubeconfig is neither YAML nor JSON")
}

// errNoContext and the two others have the words of the contract (TR-23a).
var errNoContext = errors.New("did not find context defined in current context")

func (k *kubeconfig) root() *yaml.Node { return k.document.Content[0] }

// context returns the value of a key of the current context.
func (k *kubeconfig) context(key string) (string, error) {
	current, err := text(k.root(), "current-context")
	if err != nil {
		return "", err
	}
	context, err := k.named("contexts", "context", current)
	if err != nil {
		return "", err
	}
	if context == nil {
		return "", errNoContext
	}
	return text(context, key)
}

// user returns the user of the current context.
func (k *kubeconfig) user() (*yaml.Node, error) {
	name, err := k.context("user")
	if err != nil {
		return nil, err
	}
	user, err := k.named("users", "user", name)
	if err == nil && user == nil {
		err = fmt.Errorf("did not find authInfo of current context named %s", name)
	}
	return user, err
}

// cluster returns the cluster of the current context.
func (k *kubeconfig) cluster() (*yaml.Node, error) {
	name, err := k.context("cluster")
	if err != nil {
		return nil, err
	}
	cluster, err := k.named("clusters", "cluster", name)
	if err == nil && cluster == nil {
		err = fmt.Errorf("did not find cluster of current context named %s", name)
	}
	return cluster, err
}

func (k *kubeconfig) token() (string, error) {
	user, err := k.user()
	if err != nil {
		return "", err
	}
	return text(user, "token")
}

func (k *kubeconfig) setToken(token string) error {
	user, err := k.user()
	if err != nil {
		return err
	}
	return set(user, "token", token)
}

func (k *kubeconfig) removeToken() error {
	user, err := k.user()
	if err != nil {
		return err
	}
	return set(user, "token", "")
}

func (k *kubeconfig) ca() ([]byte, error) {
	cluster, err := k.cluster()
	if err != nil {
		return nil, err
	}
	encoded, err := text(cluster, "certificate-authority-data")
	if err != nil {
		return nil, err
	}
	ca, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("certificate-authority-data of the current cluster is not base64")
	}
	return ca, nil
}

func (k *kubeconfig) setCA(ca []byte) error {
	cluster, err := k.cluster()
	if err != nil {
		return err
	}
	return set(cluster, "certificate-authority-data", base64.StdEncoding.EncodeToString(ca))
}

func (k *kubeconfig) encode() ([]byte, error) {
	var buffer bytes.Buffer
	encoder := yaml.NewEncoder(&buffer)
	encoder.SetIndent(2)
	if err := encoder.Encode(&k.document); err != nil {
		return nil, errors.New("kubeconfig cannot be written as YAML")
	}
	err := encoder.Close()
	return buffer.Bytes(), err
}

// named returns the content of the entry with a name in a list of contexts, clusters or users; nil if there is none. An entry without
// content gets some, so that it can be changed.
func (k *kubeconfig) named(list, content, name string) (*yaml.Node, error) {
	entries, err := value(k.root(), list)
	if err != nil || entries == nil || isNull(entries) {
		return nil, err
	}
	if entries.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("cannot unmarshal %s into Go struct field Config.%s", kindOf(entries), list)
	}
	for _, entry := range entries.Content {
		if entry.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("cannot unmarshal %s into Go struct field Config.%s", kindOf(entry), list)
		}
		if is, err := text(entry, "name"); err != nil || is != name {
			if err != nil {
				return nil, err
			}
			continue
		}
		found, err := value(entry, content)
		switch {
		case err != nil:
			return nil, err
		case found == nil:
			found = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			entry.Content = append(entry.Content, scalar(content), found)
		case isNull(found):
			*found = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		case found.Kind != yaml.MappingNode:
			return nil, fmt.Errorf("cannot unmarshal %s into Go struct field Config.%s.%s", kindOf(found), list, content)
		}
		return found, nil
	}
	return nil, nil
}

// value returns the value of a key of a mapping; nil if there is none. A key that is there twice is an error: readers differ in which counts.
func value(mapping *yaml.Node, key string) (*yaml.Node, error) {
	var found *yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("key %q occurs twice, the second time in line %d", key, mapping.Content[i].Line)
		}
		found = mapping.Content[i+1]
	}
	return found, nil
}

// text returns the value of a key that is a string; empty if there is none.
func text(mapping *yaml.Node, key string) (string, error) {
	node, err := value(mapping, key)
	if err != nil || node == nil || isNull(node) {
		return "", err
	}
	if node.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("cannot unmarshal %s into Go struct field of type string: %s", kindOf(node), key)
	}
	return node.Value, nil
}

// set sets the value of a key that is a string; an empty one removes the key.
func set(mapping *yaml.Node, key, to string) error {
	if _, err := text(mapping, key); err != nil {
		return err
	}
	node, err := value(mapping, key)
	switch {
	case err != nil:
		return err
	case to == "" && node != nil:
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if mapping.Content[i+1] == node {
				mapping.Content = append(mapping.Content[:i], mapping.Content[i+2:]...)
			}
		}
	case to == "":
	case node == nil:
		mapping.Style &^= yaml.FlowStyle // An empty one is written as {}.
		mapping.Content = append(mapping.Content, scalar(key), scalar(to))
	default:
		node.Kind, node.Tag, node.Style, node.Value, node.Content = yaml.ScalarNode, "!!str", 0, to, nil
	}
	return nil
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// kindOf names the kind of a node, as decoders do.
func kindOf(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.SequenceNode:
		return "array"
	case node.Kind == yaml.MappingNode:
		return "object"
	case node.Tag == "!!int" || node.Tag == "!!float":
		return "number"
	case node.Tag == "!!bool":
		return "bool"
	}
	return "string"
}

// unfold writes lists and mappings in lines.
func unfold(node *yaml.Node) {
	if node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode {
		node.Style &^= yaml.FlowStyle
	}
	for _, child := range node.Content {
		unfold(child)
	}
}
