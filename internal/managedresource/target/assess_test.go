package target

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
)

func TestEventLines(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := &Assessor{clock: clocktesting.NewFakePassiveClock(now)}
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	for want, event := range map[string]corev1.Event{
		"\n* cloud reported 2m ago: no":                {Source: corev1.EventSource{Component: "cloud"}, FirstTimestamp: at(2 * time.Minute), Message: "no"},
		"\n* cloud reported 10s ago (x3 over 60m): no": {ReportingController: "cloud", FirstTimestamp: at(time.Hour), LastTimestamp: at(10 * time.Second), Count: 3, Message: "no"},
		"\n* cloud reported 30s ago: no":               {ReportingController: "cloud", EventTime: metav1.NewMicroTime(now.Add(-30 * time.Second)), Message: "no"},
		"\n* cloud reported <unknown> ago: no":         {ReportingController: "cloud", Message: "no"},
	} {
		expect.Equal(t, a.eventLine(&event), want, "MRX-13")
	}
}

func TestAgesAreNoNews(t *testing.T) {
	condition := func(message string) meta.ConditionChange {
		return meta.ConditionChange{Type: resourcesv1alpha1.ResourcesHealthy, Message: message}
	}
	present := []resourcesv1alpha1.Condition{{Type: resourcesv1alpha1.ResourcesHealthy, Message: "x\n* cloud reported 10s ago (x3 over 60m): no"}}
	expect.Equal(t, WithoutRepeats(condition("x\n* cloud reported 2m ago (x4 over 61m): no"), present).Message, present[0].Message, "MRB-18")
	expect.True(t, WithoutRepeats(condition("x\n* cloud reported 2m ago: other"), present).Message != present[0].Message,
		"MRB-18: news are lost")
}

func TestProblemsAreBounded(t *testing.T) {
	problems := make([]problem, 25)
	for i := range problems {
		problems[i].message = "m"
	}
	expect.Equal(t, join(problems), "m; m; m; m; m; m; m; m; m; m; and 15 more", "MRB-29/MRH-3")
}

// TestUnreadableObjects: an object that can't be read is not missing, and nothing says that it is rolled out.
func TestUnreadableObjects(t *testing.T) {
	s, client := newServer(t)
	s.serve(deploymentKind, "deployments", true)
	s.put(deploymentKind, "n", "d", nil)
	s.refuse("get", true)
	l := objects.New()
	a := NewAssessor(client, l, NewWatches(client, l, WatchOptions{}), clocktesting.NewFakePassiveClock(time.Now()))
	refs := []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "d"}}}
	assessment, err := a.Assess(t.Context(), refs)
	if assessment.Health.Status != resourcesv1alpha1.ConditionFalse || assessment.Health.Reason != "HealthCheckError" {
		t.Errorf("MRH-5/MRB-28: got %+v", assessment.Health)
	}
	if want := `Error executing health check for Deployment "n/d": `; !strings.HasPrefix(assessment.Health.Message, want) || strings.Contains(assessment.Health.Message, "missing") {
		t.Errorf("MRH-7: got %q, want it to begin with %q", assessment.Health.Message, want)
	}
	expect.True(t, err != nil && len(assessment.Changes()) == 1,
		"MRP-3: the roll-out of an unreadable object is %+v, %v", assessment.Progressing, err)
}
