package highavailabilityconfig

import (
	"encoding/json"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/endpoint/admission/admissiontest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestReplicas(t *testing.T) {
	unset, empty, foo := in(), in("failure-tolerance-type", ""), in("failure-tolerance-type", "foo")
	type values = map[string]string
	controller, server := values{"type": "controller"}, values{"type": "server"}
	four := values{"replicas": "4"}
	for name, c := range map[string]struct {
		cluster             cluster
		labels, annotations values
		replicas            string
		want                string
	}{
		"HA-11, no type":                         {unset, nil, nil, "1", "1"},
		"HA-11/an empty type, and an annotation": {unset, values{"type": ""}, four, "1", "1"},
		"BH-HA-2, controller, unset":             {unset, controller, nil, "1", "2"},
		"HA-14/controller, empty":                {empty, controller, nil, "2", "1"},
		"HA-14/controller, foo":                  {foo, controller, nil, "1", "2"},
		"HA-14/server, unset":                    {unset, server, nil, "1", "2"},
		"HA-14/server, empty":                    {empty, server, nil, "1", "2"},
		"HA-14/server, foo":                      {foo, server, nil, "1", "2"},
		"HA-14/any other type":                   {empty, values{"type": "other"}, nil, "1", "2"},
		"BH-HA-4, HA-10, hibernated":             {foo, server, four, "0", "0"},
		"HA-10/null":                             {foo, server, four, "null", "null"},
		"BH-HA-3, HA-12, the annotation":         {unset, server, four, "1", "4"},
		"HA-12/with an autoscaler and more":      {unset.scaling(9), server, four, "5", "5"},
		"HA-12/without a type":                   {unset, nil, four, "1", "1"},
		"HA-12/zero is taken literally":          {unset, server, values{"replicas": "0"}, "3", "0"},
		"HA-14/down, too":                        {unset, server, nil, "5", "2"},
		"HA-15, an autoscaler, less":             {unset.scaling(9), server, nil, "1", "2"},
		"BH-HA-5, HA-15, an autoscaler, more":    {unset.scaling(9), server, nil, "5", "5"},
		"HA-13, an autoscaler of another kind":   {unset.scalingOf("apps/v1", "StatefulSet", "x", 9), server, nil, "5", "2"},
		"HA-13, of another name":                 {unset.scalingOf("apps/v1", "Deployment", "y", 9), server, nil, "5", "2"},
		"HA-13, of another version":              {unset.scalingOf("apps/v1beta1", "Deployment", "x", 9), server, nil, "5", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			got := specOf(t, c.cluster, plain, workloadOf(deployments, c.labels, c.annotations, `{"replicas":`+c.replicas+`,"template":{}}`))
			text := "null"
			if got.Replicas != nil {
				text = fmt.Sprint(*got.Replicas)
			}
			expect.Equal(t, text, c.want)
		})
	}
}

// TestGeneratedName: an object whose name is still to be made is nobody's target (HA-16).
func TestGeneratedName(t *testing.T) {
	object := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"generateName":"x-","labels":{"` + Type + `":"server"}},"spec":{"replicas":5,"template":{}}}`)
	expect.Equal(t, *specOf(t, in().scalingOf("apps/v1", "Deployment", "", 9), plain, object).Replicas, 2, "HA-16")
}

// TestAutoscalers: nothing but the limits of an autoscaler is changed (HA-24).
func TestAutoscalers(t *testing.T) {
	zone := in("failure-tolerance-type", "zone")
	type values = map[string]string
	controller := values{"type": "controller"}
	for name, c := range map[string]struct {
		labels, annotations values
		before, after       string
	}{
		"HA-22, raised":                         {controller, nil, "1 2", "2 2"},
		"HA-23, both":                           {controller, nil, "1 1", "2 2"},
		"HA-21, the annotation":                 {controller, values{"replicas": "12"}, "1 1", "12 12"},
		"HA-22, never lowered":                  {controller, nil, "12 16", "12 16"},
		"HA-21, no type":                        {nil, values{"replicas": "12"}, "1 1", "1 1"},
		"HA-20, null":                           {controller, nil, "null 1", "null 1"},
		"HA-20/off":                             {controller, nil, "0 1", "0 1"},
		"WB-4/HA-23, the upper limit was wrong": {controller, nil, "12 5", "12 12"},
	} {
		t.Run(name, func(t *testing.T) {
			var least, most string
			must.Succeed(t, expect.ErrorOf(fmt.Sscan(c.before, &least, &most)))
			object := workloadOf(autoscalers, c.labels, c.annotations, `{"minReplicas":`+least+`,"maxReplicas":`+most+`,"scaleTargetRef":{"kind":"Deployment","name":"x"}}`)
			result, admitted, err := admissiontest.Apply(zone.decide(), object)
			if err != nil || !admitted {
				t.Fatal(admitted, err)
			}
			var got autoscalingv2.HorizontalPodAutoscaler
			must.Succeed(t, json.Unmarshal(result, &got))
			text := "null"
			if got.Spec.MinReplicas != nil {
				text = fmt.Sprint(ptr.Deref(got.Spec.MinReplicas, 0))
			}
			if text = fmt.Sprint(text, " ", got.Spec.MaxReplicas); text != c.after {
				t.Errorf("got %s, want %s", text, c.after)
			}
		})
	}
	wrong := workloadOf(autoscalers, controller, values{"replicas": "x"}, `{"minReplicas":1,"maxReplicas":1}`)
	response := admissiontest.Ask(zone.decide(), admissionv1.Create, wrong)
	expect.True(t, !response.Allowed && response.Result.Code == 403, "HA-12: %+v", response.Result)
	missing := in()
	missing.broken = "missing"
	if response := admissiontest.Ask(missing.decide(), admissionv1.Create, workloadOf(autoscalers, controller, nil, `{"minReplicas":1,"maxReplicas":1}`)); response.Result.Code != 500 {
		t.Errorf("HA-1: %+v", response.Result)
	}
}
