package token

import (
	"maps"
)

// Keys of the data of Secrets.
const (
	KeyToken      = "token"
	KeyKubeconfig = "kubeconfig"
	KeyBundle     = "bundle.crt"
)

// Read returns the token in data; empty if there is none (TR-9).
func Read(data map[string][]byte) (string, error) {
	content, found := data[KeyKubeconfig]
	if !found {
		return string(data[KeyToken]), nil
	}
	k, err := parseKubeconfig(content)
	if err != nil {
		return "", err
	}
	return k.token()
}

// Write returns a copy of data with this token, and with the CA if it is wanted (TR-21 to TR-23).
func Write(data map[string][]byte, token string, wantCA bool, ca []byte) (map[string][]byte, error) {
	written := maps.Clone(data)
	if written == nil {
		written = map[string][]byte{}
	}
	content, found := data[KeyKubeconfig]
	if !found {
		written[KeyToken] = []byte(token)
		if wantCA && len(ca) > 0 {
			written[KeyBundle] = ca
		} else {
			delete(written, KeyBundle)
		}
		return written, nil
	}
	k, err := parseKubeconfig(content)
	if err != nil {
		return nil, err
	}
	if err := k.setToken(token); err != nil {
		return nil, err
	}
	if wantCA && len(ca) > 0 {
		if err := k.setCA(ca); err != nil {
			return nil, err
		}
	}
	written[KeyKubeconfig], err = k.encode()
	return written, err
}

// Handed returns the data of the target Secret for a token that moves there (TR-20, C14). The present content of the
// target decides its form; a kubeconfig that only the source has is copied.
func Handed(source, target map[string][]byte, token string, wantCA bool, ca []byte) (map[string][]byte, error) {
	base := maps.Clone(target)
	if base == nil {
		base = map[string][]byte{}
	}
	if _, found := base[KeyKubeconfig]; !found {
		if content, given := source[KeyKubeconfig]; given {
			base[KeyKubeconfig] = content
			// Otherwise they would remain, the token until it expires.
			delete(base, KeyToken)
			delete(base, KeyBundle)
		}
	}
	return Write(base, token, wantCA, ca)
}

// Leftover reports whether a source still has a token that belongs into the target.
func Leftover(source map[string][]byte) (bool, error) {
	_, bundle := source[KeyBundle]
	_, bare := source[KeyToken]
	if bare || bundle {
		return true, nil
	}
	token, err := Read(source)
	return token != "", err
}

// Without returns data without a token and a CA, for a source whose token is in the target (C14); a kubeconfig stays,
// without its token.
func Without(data map[string][]byte) (map[string][]byte, error) {
	rest := maps.Clone(data)
	delete(rest, KeyToken)
	delete(rest, KeyBundle)
	content, found := rest[KeyKubeconfig]
	if !found {
		return rest, nil
	}
	k, err := parseKubeconfig(content)
	if err != nil {
		return nil, err
	}
	if token, err := k.token(); err != nil || token == "" {
		return rest, err
	}
	if err := k.removeToken(); err != nil {
		return nil, err
	}
	rest[KeyKubeconfig], err = k.encode()
	return rest, err
}
