// Package metamorphic draws predicates and exact searches at random and wants one answer, whatever the configuration: predicates by index and by scan, wide
// columns fetched late and early, batches of 1, 7 and 8192 rows, one worker and four; and the same from a table without any index. The build tag
// soak draws many more.
package metamorphic
