//go:build soak

package metamorphic

const draws = 20_000

const seed = "0" // another one each time
