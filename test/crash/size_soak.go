//go:build soak

package crash

const everyOperation = true

const kills = 60
