package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// share is the part of the lifetime after which a token is renewed, and longest the maximum time until then
	// (C13).
	share   = 0.8
	longest = 24 * time.Hour
	// earlier is the largest part of that time by which a renewal may be earlier, to spread renewals (C13).
	earlier = 0.05
	// shortest is the shortest time until a renewal, for tokens that our clock already considers expired.
	shortest = 30 * time.Second
)

// Delay returns the time until a token with this lifetime is renewed: 80 % of the lifetime but at most 24 hours, less
// up to 5 % of it (C13, TR-17). spread is from 0 (none of the 5 %) to 1 (all).
func Delay(lifetime time.Duration, spread float64) time.Duration {
	delay := time.Duration(math.Min(float64(lifetime)*share, float64(longest)) * (1 - earlier*spread))
	return max(delay, shortest)
}

// Stamp returns the value of the annotation with the time of the renewal (TR-18).
func Stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Examination is the result of checking the data of a Secret. Renew is the reason for a new token; empty if none is
// needed.
type Examination struct {
	Token string
	Renew string
}

// Examine checks the data that holds the token: whether there is a token, whether the CA next to it is that of the
// target (TR-7, TR-9, TR-10), and whether the token belongs to the ServiceAccount with the given UID.
func (a *Asked) Examine(destination map[string][]byte, ca []byte, account types.UID, now time.Time) (Examination, error) {
	if a.demanded() {
		return Examination{Renew: "it is not known when to renew the token"}, nil
	}
	token, err := Read(destination)
	if err != nil {
		return Examination{}, fmt.Errorf("could not check whether token exists in secret data: %w", err)
	}
	if token == "" {
		return Examination{Renew: "there is no token"}, nil
	}
	if a.InjectCA {
		current, err := sameCA(destination, ca)
		if err != nil {
			return Examination{}, fmt.Errorf("could not check whether the caBundle is up to date: %w", err)
		}
		if !current {
			return Examination{Token: token, Renew: "the CA has changed"}, nil
		}
	}
	return Examination{Token: token, Renew: a.useless(token, account, now)}, nil
}

// Remaining returns the time until the token is due for renewal; zero or less means now (TR-12).
func (a *Asked) Remaining(now time.Time) (time.Duration, error) {
	at, err := time.Parse(time.RFC3339, a.annotations[AnnotationRenew])
	if err != nil {
		return 0, fmt.Errorf("could not parse renew timestamp: annotation %q is not of the form %s", AnnotationRenew, time.RFC3339)
	}
	return at.Sub(now), nil
}

// demanded reports whether a new token is requested by removing the annotation with the time of the renewal (TR-6,
// TR-7).
func (a *Asked) demanded() bool { return a.annotations[AnnotationRenew] == "" }

// Early reports whether a renewal now would be before its time, and not on request.
func (a *Asked) Early(now time.Time) bool {
	if a.demanded() {
		return false
	}
	remaining, err := a.Remaining(now)
	return err != nil || remaining > 0
}

// Claims are the unverified claims of a token. Missing claims are empty.
type Claims struct {
	// Expiry is the expiry of the token.
	Expiry time.Time
	// User is the user name as the API server has it; AccountUID is the UID of the ServiceAccount.
	User       string
	AccountUID types.UID
}

// ClaimsOf returns the claims of a token; they are empty if it is not a JSON web token.
func ClaimsOf(token string) Claims {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Claims{}
	}
	var claims struct {
		Expiry     int64  `json:"exp"`
		Subject    string `json:"sub"`
		Kubernetes struct {
			Account struct {
				UID types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Claims{}
	}
	c := Claims{User: claims.Subject, AccountUID: claims.Kubernetes.Account.UID}
	if claims.Expiry > 0 {
		c.Expiry = time.Unix(claims.Expiry, 0)
	}
	return c
}

// useless returns the reason why a token is useless according to its claims; empty if there is none.
func (a *Asked) useless(token string, account types.UID, now time.Time) string {
	claims := ClaimsOf(token)
	switch {
	case !claims.Expiry.IsZero() && !now.Before(claims.Expiry) && !a.pauses(now):
		return "the token has expired"
	case claims.User != "" && claims.User != "system:serviceaccount:"+a.Account.Namespace+":"+a.Account.Name:
		return "the token is of another ServiceAccount"
	case claims.AccountUID != "" && claims.AccountUID != account:
		return "the token is of a ServiceAccount that was replaced"
	}
	return ""
}

// pauses reports whether the renewal is not due yet, but within the shortest delay. A token that has expired and is
// renewed so soon was either issued just now, by an API server whose clock is behind ours, or its user waits no
// longer than that delay.
func (a *Asked) pauses(now time.Time) bool {
	remaining, err := a.Remaining(now)
	return err == nil && remaining > 0 && remaining <= shortest
}

func sameCA(destination map[string][]byte, ca []byte) (bool, error) {
	content, found := destination[KeyKubeconfig]
	if !found {
		return bytes.Equal(destination[KeyBundle], ca), nil
	}
	k, err := parseKubeconfig(content)
	if err != nil {
		return false, err
	}
	present, err := k.ca()
	// A CA is never removed from a kubeconfig (TR-23).
	return len(ca) == 0 || bytes.Equal(present, ca), err
}
