// Package churn runs random statements on one table with an index of every kind and compares each answer with a model in memory.
//
// It owns the steps (steps.go), the model with its three-valued predicates (model.go) and the comparison (churn.go); it does not own any test: those of this
// package run without another engine, those of test/interop let the real engine have the last word.
//
// C1: each step draws from a source of its own, made of the seed and the step's number. A run is replayed by its seed, and gets shorter by leaving steps out
// (Options.Skip, or the environment: LAKESQL_CHURN_SEED, LAKESQL_CHURN_STEPS, LAKESQL_CHURN_SKIP=3,17).
package churn
