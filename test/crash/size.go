//go:build !soak

package crash

// everyOperation says that reads fail too.
const everyOperation = false

// kills is how many processes a test kills at a time of its own choice; rounds is what each writer does beside others.
const kills, rounds = 2, 12
