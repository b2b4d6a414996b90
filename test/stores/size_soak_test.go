//go:build stores && soak

package stores

const everyLoss, lossRounds = true, 60
