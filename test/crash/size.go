//go:build !soak

package crash

// everyOperation says that reads fail too.
const everyOperation = false

// kills is how many processes a test kills at a time of its own choice.
const kills = 4
