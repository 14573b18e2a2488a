package sourcecluster

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

func TestMessagesOfEventsAreBounded(t *testing.T) {
	client := fake.NewClientset()
	events := NewEvents(client.CoreV1(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	events.Warn(t.Context(), &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}, "Reason", "x"+strings.Repeat("€", 1000))
	list, err := client.CoreV1().Events("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(err, list.Items)
	}
	if message := list.Items[0].Message; len(message) > maxNote || !utf8.ValidString(message) || !strings.Contains(message, "more bytes") {
		t.Errorf("%d bytes: %s", len(message), message[len(message)-40:])
	}
}
