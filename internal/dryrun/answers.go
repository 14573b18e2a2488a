package dryrun

import (
	"encoding/base64"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// question returns the answer to a TokenRequest or a TokenReview, and nil for any other request. A TokenRequest is
// recorded, because it would issue a token.
func (t *transport) question(q *request, body object) object {
	switch {
	case q.group == "" && q.resource == "serviceaccounts" && q.subresource == "token":
		t.mu.Lock()
		defer t.mu.Unlock()
		t.recordLocked(Write{Verb: q.verb, Resource: q.resource, Subresource: q.subresource, Namespace: q.namespace, Name: q.name})
		return issued(q, body, time.Now())
	case q.group == "authentication.k8s.io" && q.resource == "tokenreviews":
		t.mu.Lock()
		defer t.mu.Unlock()
		t.accepted++
		audiences, _, _ := unstructured.NestedSlice(body, "spec", "audiences")
		body["status"] = object{"authenticated": true, "audiences": audiences}
		return body
	}
	return nil
}

// issued returns a TokenRequest with a token that no API server accepts: it has claims, but no signature.
func issued(q *request, body object, now time.Time) object {
	seconds, _, _ := unstructured.NestedInt64(body, "spec", "expirationSeconds")
	expiry := now.Add(time.Duration(seconds) * time.Second)
	claims, err := utiljson.Marshal(object{
		"exp": expiry.Unix(), "iat": now.Unix(), "sub": "system:serviceaccount:" + q.namespace + ":" + q.name,
	})
	if err != nil {
		return nil // All of it can be encoded.
	}
	encode := base64.RawURLEncoding.EncodeToString
	body["status"] = object{
		"token":               encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "." + encode([]byte("none")),
		"expirationTimestamp": expiry.UTC().Format(time.RFC3339),
	}
	return body
}
