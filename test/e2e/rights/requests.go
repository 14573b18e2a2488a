package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
)

// allows returns the right of a rule that a request needs, if the rule allows it.
func (r *rule) allows(asked *cluster.Request) (right, bool) {
	if r.scope.Namespace != "" && r.scope.Namespace != asked.Object.Namespace || len(r.ResourceNames) > 0 && !slices.Contains(r.ResourceNames, asked.Object.Name) {
		return right{}, false
	}
	verb, group, resource := among(r.Verbs, asked.Verb), among(r.APIGroups, asked.Object.Group), among(r.Resources, asked.Resource())
	if verb < 0 || group < 0 || resource < 0 {
		return right{}, false
	}
	return right{r.executable, r.feature, string(r.scope.Cluster), r.Verbs[verb], inGroup(r.Resources[resource], r.APIGroups[group])}, true
}

// among says which of some names allows one, or -1.
func among(those []string, one string) int {
	return slices.IndexFunc(those, func(each string) bool { return each == one || each == "*" })
}

// read are the rights that were granted in the clusters with a folder in a folder, and those of them that requests used.
func read(folder string) (granted []right, used map[right]bool, err error) {
	used = map[right]bool{}
	clusters, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, nil, err
	}
	if len(clusters) == 0 {
		return nil, nil, fmt.Errorf("no cluster wrote down anything in %s", folder)
	}
	for _, each := range clusters {
		rules, err := rulesIn(each)
		if err != nil {
			return nil, nil, err
		}
		for _, those := range rules {
			for _, one := range those {
				granted = append(granted, one.rights()...)
			}
		}
		if err := markUsed(each, rules, used); err != nil {
			return nil, nil, err
		}
	}
	return granted, used, nil
}

// rulesIn are the rules of each user that got rights in a cluster.
func rulesIn(folder string) (map[string][]rule, error) {
	files, err := filepath.Glob(filepath.Join(folder, harness.GrantedFiles))
	if err != nil {
		return nil, err
	}
	rules := map[string][]rule{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		granted := harness.Granted{}
		if err := json.Unmarshal(content, &granted); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		x, found := executables[granted.Executable]
		if !found {
			return nil, fmt.Errorf("%s: no executable %q", file, granted.Executable)
		}
		all, err := x.under(granted.Config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, one := range all {
			if string(one.scope.Cluster) == granted.Cluster {
				rules[granted.User] = append(rules[granted.User], one)
			}
		}
	}
	return rules, nil
}

// markUsed adds the rights that the requests in a cluster used.
func markUsed(folder string, rules map[string][]rule, used map[right]bool) error {
	begin, _, _ := strings.Cut(cluster.RequestsLog, ".")
	logs, err := filepath.Glob(filepath.Join(folder, begin+"*"))
	if err != nil {
		return err
	}
	// Most requests are like others; names matter where rules have names.
	type asked struct{ user, verb, group, resource, subresource, namespace, name string }
	seen := map[asked]bool{}
	for _, log := range logs {
		if err := cluster.EachRequest(log, "", func(r *cluster.Request) {
			like := asked{r.User.Name, r.Verb, r.Object.Group, r.Object.Resource, r.Object.Subresource, r.Object.Namespace, r.Object.Name}
			if seen[like] || r.Response.Code == http.StatusForbidden || r.Response.Code == http.StatusUnauthorized {
				return
			}
			seen[like] = true
			for _, one := range rules[r.User.Name] {
				if right, allowed := one.allows(r); allowed {
					used[right] = true
				}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}
