package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml"
)

// kubeconfig is a decoded kubeconfig. A change of the token keeps all other fields, including those of later versions
// and of plug-ins.
type kubeconfig map[string]any

// maxNodes limits the YAML nodes of a kubeconfig, counted before it is parsed: some five hundred contexts with their
// users and clusters.
const maxNodes = 20_000

// parseKubeconfig parses YAML or JSON, within limits because a tenant may have written it. It refuses content that a
// write would lose. The error has none of the content.
func parseKubeconfig(content []byte) (kubeconfig, error) {
	var decoded any
	switch err := boundedyaml.UnmarshalWhole(content, maxNodes, &decoded); {
	case boundedyaml.IsLimit(err):
		return nil, fmt.Errorf("kubeconfig: %w", err)
	case err != nil:
		return nil, syntax(err)
	case decoded == nil:
		return nil, errNoContext // It is empty.
	}
	k, is := decoded.(map[string]any)
	if !is {
		return nil, fmt.Errorf("cannot unmarshal %s into Go value of type v1.Config", kindOf(decoded))
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

// errNoContext has its text from the contract, like the errors for a missing user and cluster (TR-23a).
var errNoContext = errors.New("did not find context defined in current context")

// context returns the value of a key of the current context.
func (k kubeconfig) context(key string) (string, error) {
	current, err := text(k, "current-context")
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
func (k kubeconfig) user() (map[string]any, error) {
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
func (k kubeconfig) cluster() (map[string]any, error) {
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

func (k kubeconfig) token() (string, error) {
	user, err := k.user()
	if err != nil {
		return "", err
	}
	return text(user, "token")
}

func (k kubeconfig) setToken(token string) error {
	user, err := k.user()
	if err != nil {
		return err
	}
	return set(user, "token", token)
}

func (k kubeconfig) removeToken() error {
	user, err := k.user()
	if err != nil {
		return err
	}
	return set(user, "token", "")
}

func (k kubeconfig) ca() ([]byte, error) {
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

func (k kubeconfig) setCA(ca []byte) error {
	cluster, err := k.cluster()
	if err != nil {
		return err
	}
	return set(cluster, "certificate-authority-data", base64.StdEncoding.EncodeToString(ca))
}

func (k kubeconfig) encode() ([]byte, error) {
	content, err := sigsyaml.Marshal(k)
	if err != nil {
		return nil, errors.New("kubeconfig cannot be written as YAML")
	}
	return content, nil
}

// named returns the content of the entry of a name in a list of contexts, clusters or users; nil if there is none. If
// the entry has no content, it gets an empty one that can be changed.
func (k kubeconfig) named(list, content, name string) (map[string]any, error) {
	entries, is := k[list].([]any)
	if !is && k[list] != nil {
		return nil, fmt.Errorf("cannot unmarshal %s into Go struct field Config.%s", kindOf(k[list]), list)
	}
	for _, one := range entries {
		entry, is := one.(map[string]any)
		if !is {
			return nil, fmt.Errorf("cannot unmarshal %s into Go struct field Config.%s", kindOf(one), list)
		}
		if called, err := text(entry, "name"); err != nil {
			return nil, err
		} else if called != name {
			continue
		}
		switch found := entry[content].(type) {
		case nil:
			empty := map[string]any{}
			entry[content] = empty
			return empty, nil
		case map[string]any:
			return found, nil
		default:
			return nil, fmt.Errorf("cannot unmarshal %s into Go struct field Config.%s.%s", kindOf(found), list, content)
		}
	}
	return nil, nil
}

// text returns the string value of a key; empty if there is none.
func text(of map[string]any, key string) (string, error) {
	switch value := of[key].(type) {
	case nil:
		return "", nil
	case string:
		return value, nil
	default:
		return "", fmt.Errorf("cannot unmarshal %s into Go struct field of type string: %s", kindOf(value), key)
	}
}

// set sets the string value of a key; an empty one removes the key.
func set(of map[string]any, key, to string) error {
	if _, err := text(of, key); err != nil {
		return err
	}
	if to == "" {
		delete(of, key)
		return nil
	}
	of[key] = to
	return nil
}

// kindOf returns the name of the kind of a decoded value, as decoders report it.
func kindOf(value any) string {
	switch value.(type) {
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case bool:
		return "bool"
	case string:
		return "string"
	}
	return "number"
}
