package identity

import "testing"

func TestOfShoot(t *testing.T) {
	shoots := []string{"gardener.cloud:system:shoots"}
	in := func(namespace string) []string {
		return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	for name, c := range map[string]struct {
		user   string
		groups []string
		want   ShootClient
		ok     bool
	}{
		"SHI-1, gardenlet":                     {"gardener.cloud:system:shoot:foo:bar", shoots, ShootClient{"foo", "bar", Gardenlet, ""}, true},
		"SHI-1, gardenadm":                     {"gardener.cloud:gardenadm:shoot:foo:bar", shoots, ShootClient{"foo", "bar", Gardenadm, ""}, true},
		"SHI-1/without group":                  {user: "gardener.cloud:system:shoot:foo:bar"},
		"SHI-1/one part":                       {user: "gardener.cloud:system:shoot:foo", groups: shoots},
		"SHI-1/three parts":                    {user: "gardener.cloud:system:shoot:foo:bar:baz", groups: shoots},
		"SHI-1/empty parts":                    {user: "gardener.cloud:system:shoot::bar", groups: shoots},
		"SHI-1/no fall-through":                {user: "system:serviceaccount:garden:extension-shoot--a--b", groups: append(in("garden"), shoots...)},
		"SHI-2, extension":                     {"system:serviceaccount:garden-my-project:extension-shoot--myshoot--myext", in("garden-my-project"), ShootClient{"garden-my-project", "myshoot", Extension, "myext"}, true},
		"SHI-2/in namespace garden":            {"system:serviceaccount:garden:extension-shoot--myshoot--myext", in("garden"), ShootClient{"garden", "myshoot", Extension, "myext"}, true},
		"SHI-2, without extension":             {user: "system:serviceaccount:garden-my-project:extension-shoot--myshoot", groups: in("garden-my-project")},
		"SHI-2, without shoot":                 {user: "system:serviceaccount:garden-my-project:extension-shoot----myext", groups: in("garden-my-project")},
		"SHI-2, another namespace":             {user: "system:serviceaccount:foo:extension-bar", groups: in("foo")},
		"SHI-2, another name":                  {user: "system:serviceaccount:garden-my-project:extension-myshoot--myext", groups: in("garden-my-project")},
		"B-4/SHI-2, another namespace's group": {user: "system:serviceaccount:garden-a:extension-shoot--s--e", groups: in("garden-b")},
		"SHI-1/another user":                   {user: "foo:bar", groups: shoots},
		"SHI-2/another user":                   {user: "garden-a:extension-shoot--s--e", groups: in("garden-a")},
		"SHI-2/no ServiceAccount's name":       {user: "system:serviceaccount:garden", groups: in("garden")},
		"SHI-2/nobody":                         {user: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := OfShoot(c.user, c.groups)
			if ok != c.ok || ok && got != c.want {
				t.Errorf("got %v, %v, want %v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}
