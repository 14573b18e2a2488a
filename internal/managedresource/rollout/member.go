package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// Revision is the checksum of the Secrets of one member. It is empty for content that is unknown, or missing.
type Revision string

// Unread is the revision of content that nobody reads, because the member is ignored or paused.
const Unread Revision = "unread"

const (
	// revisionLength is a whole SHA-256 in hexadecimal digits: the writer of a Secret must not be able to collide a
	// shorter one.
	revisionLength = 64
	// tokenLength are 128 bits in hexadecimal digits, so that no writer finds content with a token that was resumed.
	tokenLength = 32
	// mostSecrets bounds the Secrets that a record names; content of more is not kept up while a change of it waits.
	mostSecrets = 32
)

// Token stands for one content of one member.
type Token string

// TokenOf is the token of a member's content.
func TokenOf(key types.NamespacedName, revision Revision) Token {
	sum := sha256.Sum256([]byte(key.String() + "\n" + string(revision)))
	return Token(hex.EncodeToString(sum[:])[:tokenLength])
}

// Verdict is the joint result of the gate's conditions.
type Verdict int

// Verdicts.
const (
	Pending Verdict = iota
	Passed
	Failed
)

// Member is a ManagedResource of a group.
type Member struct {
	types.NamespacedName
	Labels map[string]string
	// Applied is the last revision that was applied completely, empty if there is none. Wanted is the revision of its
	// Secrets, empty if it is not known yet.
	Applied, Wanted Revision
	// LetGo is the last revision that the group let go, which means that it may be applied. LetGoAt is the time of
	// that; it is zero if the group did not decide about it.
	LetGo   Revision
	LetGoAt time.Time
	// Since is the time since which the wanted content waits, or later. HeldSince is the time since which content
	// waits without an end, zero if that is the same.
	Since, HeldSince time.Time
	// Seen is the time at which this process first saw the member, and Turn the time at which it found that the turn
	// of the wanted content has come. Both are zero if no process follows the group, Turn also while it is not the
	// member's turn.
	Seen, Turn time.Time
	// Verdict is the gate's, since when it is like that, and why.
	Verdict Verdict
	At      time.Time
	Why     string
}

// GroupOf is the group of a ManagedResource: the name of the ConfigMap; empty for none.
func GroupOf(mr *resourcesv1alpha1.ManagedResource) string {
	return mr.Annotations[resourcesv1alpha1.AnnotationRolloutGroup]
}

// IsMember reports whether a ManagedResource counts in its group. An ignored or paused ManagedResource counts, so that
// no wave begins over its former content.
func IsMember(mr *resourcesv1alpha1.ManagedResource) bool {
	return GroupOf(mr) != "" && mr.DeletionTimestamp == nil
}

// isIdle reports whether a ManagedResource applies nothing until somebody changes its annotations.
func isIdle(mr *resourcesv1alpha1.ManagedResource) bool {
	return meta.Ignored(mr) || mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState
}

// MemberOf returns the member that a ManagedResource describes. Its wanted content is known only while it is held, or
// if nobody reads it.
func MemberOf(mr *resourcesv1alpha1.ManagedResource) Member {
	m := Member{NamespacedName: types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}, Labels: mr.Labels}
	if sum := mr.Status.SecretsDataChecksum; sum != nil {
		m.Applied = Revision(*sum)
	}
	if record, found := RecordOf(mr); found {
		m.LetGo, m.LetGoAt = record.Revision, record.Time
	}
	if condition := held(mr); condition != nil {
		m.Wanted, m.Since = RevisionIn(condition.Message), condition.LastUpdateTime.Time
		m.HeldSince = condition.LastTransitionTime.Time
	}
	if m.Wanted == "" && m.Applied != "" && isIdle(mr) && mr.Generation != mr.Status.ObservedGeneration {
		if m.Wanted = Unread; m.LetGo != "" && m.LetGo != m.Applied {
			m.Wanted = m.LetGo
		}
	}
	return m
}

// waitsSince is since when the member has content that waits.
func (m *Member) waitsSince() time.Time {
	if !m.HeldSince.IsZero() && m.HeldSince.Before(m.Since) {
		return m.HeldSince
	}
	return m.Since
}

// held is the condition of a ManagedResource whose content is held back, or nil.
func held(mr *resourcesv1alpha1.ManagedResource) *resourcesv1alpha1.Condition {
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.RolloutHeld)
	if condition == nil || condition.Status != resourcesv1alpha1.ConditionTrue {
		return nil
	}
	return condition
}

// Judge sets the verdict of the gate from the conditions of a ManagedResource.
func (m *Member) Judge(conditions meta.Conditions, progressing bool) {
	m.Verdict, m.At, m.Why = Passed, time.Time{}, ""
	take := func(conditionType resourcesv1alpha1.ConditionType, want resourcesv1alpha1.ConditionStatus, fails bool) {
		condition := conditions.Get(conditionType)
		verdict, at, why := Pending, time.Time{}, string(conditionType)+" is not known"
		if condition != nil {
			at, why = condition.LastTransitionTime.Time, fmt.Sprintf("%s is %s, %s: %s", conditionType, condition.Status,
				condition.Reason, meta.Shortened(condition.Message, longestWhy))
			switch {
			case condition.Status == want:
				verdict, why = Passed, ""
			case fails && condition.Status == resourcesv1alpha1.ConditionFalse:
				verdict = Failed
			}
		}
		switch {
		case verdict == m.Verdict && at.After(m.At):
			m.At = at
		case verdict != Passed && (m.Verdict == Passed || verdict == Failed && m.Verdict != Failed):
			m.Verdict, m.At, m.Why = verdict, at, why
		}
	}
	take(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, true)
	take(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue, true)
	switch held := conditions.Get(resourcesv1alpha1.RolloutHeld); {
	case held == nil:
	case held.Reason == resourcesv1alpha1.ReasonRolloutIncomplete:
		take(resourcesv1alpha1.RolloutHeld, "", false) // Objects have their former content still, though nothing failed.
	case held.Reason == resourcesv1alpha1.ReasonRolloutLetGo && m.Verdict == Passed && held.LastUpdateTime.After(m.At):
		m.At = held.LastUpdateTime.Time
	}
	if progressing {
		take(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse, false)
	}
}

// longestWhy bounds the part of a condition's message that is passed on.
const longestWhy = 120

// Record is the content of an annotation of a ManagedResource of a group: the revision that was let go last, when, and
// the Secrets that hold it.
type Record struct {
	Revision Revision  `json:"revision"`
	Time     time.Time `json:"time,omitzero"`
	Secrets  []string  `json:"secrets,omitempty"`
}

// RecordOf reads the record of a ManagedResource. An unreadable record is none: then its content waits once more.
func RecordOf(mr *resourcesv1alpha1.ManagedResource) (record Record, found bool) {
	text := mr.Annotations[resourcesv1alpha1.AnnotationRolloutApplied]
	if text == "" || json.Unmarshal([]byte(text), &record) != nil {
		return Record{}, false
	}
	return record, true
}

// NewRecord is the record for content in Secrets of these names.
func NewRecord(revision Revision, at time.Time, secrets []string) Record {
	record := Record{Revision: revision, Time: at}
	if len(secrets) <= mostSecrets {
		record.Secrets = secrets
	}
	return record
}

// String is the value of the annotation.
func (r Record) String() string {
	text, _ := json.Marshal(r) // Texts and a time.
	return string(text)
}

// Same reports whether two records are equal.
func (r Record) Same(other Record) bool {
	return r.Revision == other.Revision && r.Time.Equal(other.Time) && slices.Equal(r.Secrets, other.Secrets)
}
