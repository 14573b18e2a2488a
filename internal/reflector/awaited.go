package reflector

// Awaited returns the names of the kinds whose first lists are incomplete.
func Awaited(followers []*Follower) []string {
	var names []string
	for _, f := range followers {
		if !f.Synced() {
			names = append(names, f.Name)
		}
	}
	return names
}
