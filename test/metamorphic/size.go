//go:build !soak

package metamorphic

// draws is how many statements a test draws.
const draws = 12

// seed makes short runs the same; a failure prints how to replay it.
const seed = "20260101"
