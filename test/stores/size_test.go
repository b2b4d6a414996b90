//go:build stores && !soak

package stores

// everyLoss says that every statement meets every loss; lossRounds is what writers do over a wire.
const everyLoss, lossRounds = false, 6
