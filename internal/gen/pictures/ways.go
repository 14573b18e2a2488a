package pictures

// The participants of the ways of ManagedResources.
var (
	source   = place{"source cluster", []part{{"kube-apiserver", false}}}
	target   = place{"target cluster", []part{{"API server", false}}}
	triggers = part{"Triggers", true}
	run      = part{"Run", true}
	tracker  = part{"Tracker", true}
	watch    = part{"Watch", true}
)

// ways are the sequences of the documents: docs/engine.md says for each step which function takes it.
var ways = []*way{
	{
		File: "manifest.svg", Title: "How a changed manifest reaches the target",
		Description: "A changed Secret starts a run. The run reads the Secrets, claims the objects, records all of them in the inventory, " +
			"and only then creates and updates them in the target. At last it reports ResourcesApplied.",
		Places: []place{source, {"resource-manager", []part{triggers, run, tracker}}, target},
		Steps: []step{
			{From: "kube-apiserver", To: "Triggers", Text: "event: the Secret has another version", Reply: true},
			{From: "Triggers", To: "Run", Text: "the queue begins a run, which takes over the Inbox"},
			{From: "Run", To: "kube-apiserver", Text: "read the Secrets"},
			{From: "Run", To: "Run", Text: "decode, and plan against the inventory"},
			{From: "Run", To: "Tracker", Text: "claim the objects"},
			{From: "Run", To: "kube-apiserver", Text: "write the inventory with all objects, before any of them"},
			{From: "Run", To: "API server", Text: "delete objects that no manifest has any more"},
			{From: "Run", To: "API server", Text: "create and update, kind after kind"},
			{From: "API server", To: "Run", Text: "UIDs and resource versions", Reply: true},
			{From: "Run", To: "Tracker", Text: "in sync at these versions"},
			{From: "Run", To: "kube-apiserver", Text: "ResourcesApplied is True"},
			{From: "Run", To: "Triggers", Text: "the Inbox is settled"},
		},
	},
	{
		File: "drift.svg", Title: "How drift is repaired",
		Description: "Somebody changes an object in the target. The watch reports the change, the Tracker finds it out of sync, and a run " +
			"reads, compares and repairs this one object. The event of that update changes nothing.",
		Places: []place{{"resource-manager", []part{triggers, run, tracker, watch}}, target},
		Steps: []step{
			{From: "API server", To: "Watch", Text: "event: somebody scaled the Deployment", Reply: true},
			{From: "Watch", To: "Tracker", Text: "its version and digest"},
			{From: "Tracker", To: "Tracker", Text: "the digest differs: out of sync"},
			{From: "Tracker", To: "Triggers", Text: "drift of this owner's object"},
			{From: "Triggers", To: "Run", Text: "the queue begins a run when the repair is due"},
			{From: "Run", To: "Tracker", Text: "which objects are out of sync?"},
			{From: "Run", To: "API server", Text: "read this object only"},
			{From: "Run", To: "API server", Text: "update, bound to the resource version that was read"},
			{From: "API server", To: "Run", Text: "new resource version", Reply: true},
			{From: "Run", To: "Tracker", Text: "in sync at this version"},
			{From: "Run", To: "Run", Text: "one Event names the object and the other writer"},
			{From: "API server", To: "Watch", Text: "event of our own update", Reply: true},
			{From: "Watch", To: "Tracker", Text: "known already: nothing changes"},
		},
	},
	{
		File: "deletion.svg", Title: "How a ManagedResource is deleted",
		Description: "Somebody deletes the ManagedResource. For each object the run asks whether the deletion is still wanted and whether " +
			"another run applies the object, then deletes it. The finalizer goes once all objects are gone.",
		Places: []place{source, {"resource-manager", []part{run, tracker}}, target},
		Steps: []step{
			{From: "kube-apiserver", To: "Run", Text: "event: the ManagedResource has a deletion timestamp", Reply: true},
			{From: "Run", To: "Tracker", Text: "this run leaves all objects"},
			{From: "Run", To: "kube-apiserver", Text: "the status says that the deletion is under way"},
			{Block: []branch{{"for each object, kind after kind in the reverse order", []step{
				{From: "Run", To: "API server", Text: "read the object"},
				{From: "Run", To: "kube-apiserver", Text: "is the ManagedResource still being deleted?"},
				{From: "Run", To: "Tracker", Text: "does another run apply the object?"},
				{From: "Run", To: "API server", Text: "delete, bound to UID and resource version"},
			}}}},
			{From: "API server", To: "Tracker", Text: "events: objects are gone", Reply: true},
			{Block: []branch{
				{"an object is still there", []step{
					{From: "Run", To: "kube-apiserver", Text: "DeletionPending names the object and its finalizers"},
				}},
				{"all objects are gone", []step{
					{From: "Run", To: "kube-apiserver", Text: "remove the finalizer"},
				}},
			}},
		},
	},
	{
		File: "leader.svg", Title: "How another process takes over",
		Description: "The former leader begins no more requests, records what it created and releases the lease. The new leader takes the " +
			"lease, watches Secrets, reads all inventories, lists each kind once, and writes only what is missing.",
		Places: []place{source, {"resource-manager", []part{{"Former leader", true}, {"New leader", true}}}, target},
		Steps: []step{
			{From: "Former leader", To: "API server", Text: "create: sent already"},
			{From: "Former leader", To: "Former leader", Text: "its context ends: no new requests"},
			{From: "API server", To: "Former leader", Text: "the answer, within two seconds", Reply: true},
			{From: "Former leader", To: "kube-apiserver", Text: "inventory of what was created"},
			{From: "Former leader", To: "kube-apiserver", Text: "release the Lease"},
			{From: "New leader", To: "kube-apiserver", Text: "take the Lease, identify the source"},
			{From: "New leader", To: "kube-apiserver", Text: "watch Secrets from now on"},
			{From: "New leader", To: "kube-apiserver", Text: "read all inventories"},
			{From: "New leader", To: "API server", Text: "list each kind once, then watch it"},
			{From: "New leader", To: "New leader", Text: "first runs compare with the lists"},
			{From: "New leader", To: "kube-apiserver", Text: "read a ManagedResource before its first write"},
			{From: "New leader", To: "API server", Text: "only the writes that are missing"},
		},
	},
	{
		File: "review.svg", Title: "How a seed's request is reviewed",
		Description: "kube-apiserver asks RBAC first, then the SeedAuthorizer, which looks for a path from the object to the client's Seed " +
			"in the graph. A write that is allowed also passes SeedRestriction, which sees the content.",
		Places: []place{
			{"seed", []part{{"gardenlet", false}}},
			{"garden", []part{{"kube-apiserver", false}}},
			{"admission-controller", []part{{"SeedAuthorizer", true}, {"Graph", true}, {"SeedRestriction", true}}},
		},
		Steps: []step{
			{From: "kube-apiserver", To: "Graph", Text: "events of fourteen kinds, all the time", Reply: true},
			{From: "gardenlet", To: "kube-apiserver", Text: "get the Secret garden-dev/aws"},
			{From: "kube-apiserver", To: "kube-apiserver", Text: "RBAC does not allow it"},
			{From: "kube-apiserver", To: "SeedAuthorizer", Text: "SubjectAccessReview"},
			{From: "SeedAuthorizer", To: "SeedAuthorizer", Text: "rule SR-22: only related objects"},
			{From: "SeedAuthorizer", To: "Graph", Text: "does the Secret lead to Seed a?"},
			{Block: []branch{
				{"there is a path", []step{
					{From: "SeedAuthorizer", To: "kube-apiserver", Text: "allowed", Reply: true},
				}},
				{"the graph has not seen the object", []step{
					{From: "SeedAuthorizer", To: "kube-apiserver", Text: "read it once, and decide by what it says"},
				}},
				{"there is none", []step{
					{From: "SeedAuthorizer", To: "kube-apiserver", Text: "no opinion, with the reason", Reply: true},
					{From: "kube-apiserver", To: "gardenlet", Text: "403: no relationship found", Reply: true},
				}},
			}},
			{Block: []branch{{"an allowed request writes", []step{
				{From: "kube-apiserver", To: "SeedRestriction", Text: "AdmissionReview with the content"},
				{From: "SeedRestriction", To: "Graph", Text: "may the client name these objects?"},
				{From: "SeedRestriction", To: "kube-apiserver", Text: "admitted, or refused", Reply: true},
			}}}},
			{From: "kube-apiserver", To: "gardenlet", Text: "the answer", Reply: true},
		},
	},
}
