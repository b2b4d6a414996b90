//go:build soak

package crash

const everyOperation = true

const kills, rounds = 60, 400
