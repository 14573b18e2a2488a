package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/test/cluster"
	"github.com/espalier-project/espalier/test/harness"
)

// request is what the API server wrote down about one.
type request struct {
	Verb string `json:"verb"`
	User struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// resource is the name that rules have for what was asked for.
func (r *request) resource() string {
	if r.Object.Subresource == "" {
		return r.Object.Resource
	}
	return r.Object.Resource + "/" + r.Object.Subresource
}

// by returns the right of a rule that a request needs, if the rule allows it.
func (r *request) by(one *rule) (right, bool) {
	if one.scope.Namespace != "" && one.scope.Namespace != r.Object.Namespace || len(one.ResourceNames) > 0 && !slices.Contains(one.ResourceNames, r.Object.Name) {
		return right{}, false
	}
	verb, group, resource := among(one.Verbs, r.Verb), among(one.APIGroups, r.Object.Group), among(one.Resources, r.resource())
	if verb < 0 || group < 0 || resource < 0 {
		return right{}, false
	}
	return right{one.executable, one.feature, string(one.scope.Cluster), one.Verbs[verb], inGroup(one.Resources[resource], one.APIGroups[group])}, true
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
	seen := map[request]bool{}
	for _, log := range logs {
		if err := eachRequest(log, func(r request) {
			if seen[r] || r.Response.Code == http.StatusForbidden || r.Response.Code == http.StatusUnauthorized {
				return
			}
			seen[r] = true
			for _, one := range rules[r.User.Name] {
				if right, allowed := r.by(&one); allowed {
					used[right] = true
				}
			}
		}); err != nil {
			return fmt.Errorf("%s: %w", log, err)
		}
	}
	return nil
}

// eachRequest reads what an API server wrote down, a request a line.
func eachRequest(log string, do func(request)) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF): // Also of a line that the API server did not get to write whole.
			return nil
		case err != nil:
			return err
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		do(r)
	}
}
