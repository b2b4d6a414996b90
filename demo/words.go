package demo

import "fmt"

// The vocabularies. Ranks come first: "damage" is the most frequent label, "acme" the largest tenant.
var (
	damageKinds = []string{
		"dent", "crush", "tear", "puncture", "scratch", "open_flap", "torn_label", "tape_loose", "stain", "burn", "mould",
		"broken_seal", "bulge", "leak", "fold", "missing_part", "repacked", "crack", "bent", "soaked",
	}
	damageParts = []string{"corner", "edge", "top", "bottom", "front", "back", "left", "right", "label", "content"}
	tenants     = []string{
		"acme", "borealis", "cobalt", "dunes", "ember", "fjord", "garnet", "harbor", "iris", "juniper", "kelp", "lumen",
	}
	statuses = []string{"created", "picked", "sorted", "in_transit", "out_for_delivery", "delivered", "returned", "lost"}

	noteStarts = []string{
		"Scanned at the gate", "Seen on belt 4", "Found by night shift", "Reported by driver", "Checked after unloading",
		"Photo from the sorter", "Claim opened", "Routine inspection",
	}
	noteFindings = []string{
		"corner pushed in", "outer film torn", "box wet at the base", "seal looks broken", "label hard to read", "tape came off",
		"no visible damage", "dent on the long side", "repacked by hand", "smell of fuel", "stain near the barcode", "bottom sagging",
		"edge crushed by load", "two small punctures", "content may have moved", "flap open on arrival",
	}
	noteEnds = []string{
		"customer informed", "kept aside", "sent on", "weight matches", "awaiting decision", "moved to bay 7", "driver signed", "second photo follows",
	}
)

// rareWord is in one note of a hundred.
const rareWord = "[forklift]"

const labelCount = 200

// labelNames is "damage", "wet", then kind/part in a mixed order.
func labelNames() []string {
	out := []string{"damage", "wet"}
	for i := 0; len(out) < labelCount; i++ {
		out = append(out, damageKinds[i%len(damageKinds)]+"/"+damageParts[(i*7+i/len(damageKinds))%len(damageParts)])
	}
	return out
}

func numbered(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

func routeNames() []string {
	out := make([]string, 200)
	for i := range out {
		out[i] = fmt.Sprintf("R-%c%03d", "NESW"[i%4], i)
	}
	return out
}
